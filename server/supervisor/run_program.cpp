#include "server/supervisor/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace onebit {
namespace {

constexpr size_t kMaxOutput = 16u << 20, kErrorTail = 4096;

// Between fork and exec only what is safe there: memory is as it was in one thread of many.
[[noreturn]] void become(const char* program, char* const* arguments, int out, int error) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    int null = ::open("/dev/null", O_RDONLY);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(error, 2) < 0) ::_exit(127);
    ::execv(program, arguments);
    ::_exit(127);
}

}  // namespace

std::string ProgramResult::outcome() const {
    if (timed_out) return "no end within the time limit";
    if (signal) return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    return "exit code " + std::to_string(exit_code);
}

Result<ProgramResult> run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                                  std::chrono::milliseconds limit, const std::atomic<bool>* cancel) {
    if (::access(program.c_str(), X_OK) != 0) return error_from_errno(errno, program);
    int out[2], error[2];
    if (::pipe2(out, O_CLOEXEC) < 0) return error_from_errno(errno, "pipe");
    UniqueFd out_read(out[0]), out_write(out[1]);
    if (::pipe2(error, O_CLOEXEC) < 0) return error_from_errno(errno, "pipe");
    UniqueFd error_read(error[0]), error_write(error[1]);
    std::string name = program;
    std::vector<std::string> copies = arguments;
    std::vector<char*> argv = {name.data()};
    for (std::string& argument : copies) argv.push_back(argument.data());
    argv.push_back(nullptr);

    pid_t pid = ::fork();
    if (pid < 0) return error_from_errno(errno, "fork");
    if (pid == 0) become(name.c_str(), argv.data(), out_write.get(), error_write.get());
    out_write.reset();
    error_write.reset();

    ProgramResult result;
    auto until = std::chrono::steady_clock::now() + limit;
    while (out_read || error_read) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
        if (cancel && *cancel) left = 0;
        if (left <= 0) {
            result.timed_out = true;
            ::kill(-pid, SIGKILL);
            ::kill(pid, SIGKILL);
            break;
        }
        pollfd entries[2] = {{out_read.get(), POLLIN, 0}, {error_read.get(), POLLIN, 0}};
        int ready = ::poll(entries, 2, static_cast<int>(std::min<int64_t>(left, cancel ? 100 : 60000)));
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) continue;
        char piece[16384];
        auto drain = [&](UniqueFd& fd, const pollfd& entry, std::string& text, bool tail) {
            if (!entry.revents || !fd) return;
            ssize_t got = ::read(fd.get(), piece, sizeof(piece));
            if (got < 0 && errno == EINTR) return;
            if (got <= 0) {
                fd.reset();
                return;
            }
            if (tail || text.size() < kMaxOutput) text.append(piece, static_cast<size_t>(got));
            if (tail && text.size() > kErrorTail) text.erase(0, text.size() - kErrorTail);
        };
        drain(out_read, entries[0], result.output, false);
        drain(error_read, entries[1], result.error_output, true);
    }
    int status = 0;
    for (;;) {
        // a child that closed its output may still be running
        pid_t ended = ::waitpid(pid, &status, result.timed_out ? 0 : WNOHANG);
        if (ended == pid) break;
        if (ended < 0 && errno != EINTR) break;
        if (result.timed_out || ended < 0) continue;
        if (std::chrono::steady_clock::now() >= until || (cancel && *cancel)) {
            result.timed_out = true;
            ::kill(-pid, SIGKILL);
            ::kill(pid, SIGKILL);
        } else {
            ::usleep(2000);
        }
    }
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    ::kill(-pid, SIGKILL);  // what it may have left behind
    return result;
}

}  // namespace onebit
