// Ctrl-C, SIGTERM and a terminal that closes, as something that can be waited for, while an object of this class lives.
#pragma once

#include <signal.h>

#include <atomic>

namespace onebit {

// One at a time. Threads: pending() and fd() from any.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    bool pending() const;
    const std::atomic<bool>& flag() const;
    bool terminated() const;  // by SIGTERM or SIGHUP rather than Ctrl-C
    void clear();
    // Readable while an interrupt is pending.
    int fd() const;

private:
    struct sigaction old_int_;
    struct sigaction old_term_;
    struct sigaction old_hup_;
};

}  // namespace onebit
