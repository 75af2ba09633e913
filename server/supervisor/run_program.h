// Runs a short program to its end and keeps what it says: for questions whose answer may cost a driver's crash.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {

struct ProgramResult {
    int exit_code = -1;  // -1 when it was ended by a signal
    int signal = 0;
    bool timed_out = false;    // ended by us
    std::string output;        // standard output, at most 16 MiB
    std::string error_output;  // the last 4 KiB of standard error

    // "exit code 3", "signal 11 (Segmentation fault)" or "no end within the time limit".
    std::string outcome() const;
};

// Standard input is /dev/null. The child is in a process group of its own, which is killed at the limit; it ends with
// this process. cancel: ends it as the limit does, within 100 ms. Error io when it cannot be started. Safe from any
// thread.
Result<ProgramResult> run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                                  std::chrono::milliseconds limit, const std::atomic<bool>* cancel = nullptr);

}  // namespace onebit
