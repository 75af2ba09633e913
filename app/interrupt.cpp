#include "app/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace onebit {
namespace {

std::atomic<bool> interrupted{false}, ended{false};
std::atomic<int> pipe_ends[2] = {-1, -1};

extern "C" void on_interrupt(int signal) {
    int saved = errno;
    if (signal != SIGINT) ended = true;
    interrupted = true;
    char byte = 0;
    [[maybe_unused]] ssize_t written = ::write(pipe_ends[1], &byte, 1);
    errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        pipe_ends[0] = ends[0];
        pipe_ends[1] = ends[1];
    }
    interrupted = ended = false;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    // no SA_RESTART: a read that waits for a person must return
    ::sigaction(SIGINT, &action, &old_int_);
    ::sigaction(SIGTERM, &action, &old_term_);
    ::sigaction(SIGHUP, &action, &old_hup_);
}

Interrupt::~Interrupt() {
    ::sigaction(SIGINT, &old_int_, nullptr);
    ::sigaction(SIGTERM, &old_term_, nullptr);
    ::sigaction(SIGHUP, &old_hup_, nullptr);
    for (auto& end : pipe_ends)
        if (int fd = end.exchange(-1); fd >= 0) ::close(fd);
}

bool Interrupt::pending() const { return interrupted; }
const std::atomic<bool>& Interrupt::flag() const { return interrupted; }
bool Interrupt::terminated() const { return ended; }
int Interrupt::fd() const { return pipe_ends[0]; }

void Interrupt::clear() {
    interrupted = false;
    char bytes[64];
    while (::read(pipe_ends[0], bytes, sizeof bytes) > 0) {
    }
}

}  // namespace onebit
