#include "app/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/log.h"

namespace onebit {

namespace {

int print_failure = 0;  // errno of the first write that failed

}  // namespace

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && print_failure == 0) print_failure = errno;
}

int report(const Error& error) {
    std::string line = "error: " + error.message() + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    return exit_code(error.code);
}

void tell(std::string_view text) {
    if (log_level() < LogLevel::info) return;
    std::string line = std::string(text) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
}

bool output_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool error_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }
bool input_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

int close_output() {
    errno = 0;
    const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    const int failure = print_failure ? print_failure : errno;
    // a reader that went away has what it wanted
    if (!failed || failure == EPIPE) return 0;
    return report(error_from_errno(failure ? failure : EIO, "standard output", "see where it is redirected to"));
}

}  // namespace onebit
