// Runs work that loads drivers in a child process: a driver that crashes or hangs ends the child, not the program.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace onebit {

struct ProbeResult {
    enum class Ending { exited, signalled, timed_out, not_started };
    Ending ending = Ending::not_started;
    int code = 0;            // exit code, signal, or errno of the start
    std::string output;      // what the work returned
    std::string error_tail;  // last lines that the child wrote to standard output or error

    bool ok() const { return ending == Ending::exited && code == 0; }
    // "ended by signal 11 (Segmentation fault); its last words: ..."; empty when ok().
    std::string reason() const;
};

// work: sets *output and returns an exit code from 0 to 125; runs in a forked child, so it must need no thread of the
// parent. limit: after it the child is killed. Call it while the process has one thread. Never throws.
ProbeResult run_probe(const std::function<int(std::string* output)>& work, std::chrono::milliseconds limit);

}  // namespace onebit
