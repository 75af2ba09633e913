#include "app/doctor/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/unique_fd.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t most_output = 16u << 20, most_tail = 2000;
constexpr std::chrono::milliseconds look_interval{100};

void write_all(int fd, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        done += static_cast<size_t>(count);
    }
}

[[noreturn]] void run_child(const std::function<int(std::string*)>& work, int output_fd, int error_fd) {
    // the parent may already be gone
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP}) std::signal(signal, SIG_DFL);
    dup2(error_fd, STDOUT_FILENO);
    dup2(error_fd, STDERR_FILENO);
    std::string output;
    int code = 125;
    try {
        code = work(&output);
    } catch (const std::exception& error) {
        write_all(STDERR_FILENO, std::string(error.what()) + "\n");
    } catch (...) {
        write_all(STDERR_FILENO, "unknown exception\n");
    }
    std::fflush(nullptr);
    write_all(output_fd, output);
    // no exit handlers: those of drivers are known to crash
    _exit(code);
}

// False at the end of the stream.
bool read_some(int fd, std::string& text, size_t most, bool keep_end) {
    char buffer[16384];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) return false;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > most) keep_end ? text.erase(0, text.size() - most) : text.erase(most);
    return true;
}

void fill_ending(ProbeResult& result, int status) {
    if (WIFSIGNALED(status)) {
        result.ending = ProbeResult::Ending::signalled;
        result.code = WTERMSIG(status);
    } else {
        result.ending = ProbeResult::Ending::exited;
        result.code = WEXITSTATUS(status);
    }
}

}  // namespace

std::string ProbeResult::reason() const {
    std::string text;
    switch (ending) {
        case Ending::exited:
            if (code == 0) return {};
            text = "ended with exit code " + std::to_string(code);
            break;
        case Ending::signalled:
            text = "ended by signal " + std::to_string(code) + " (" + strsignal(code) + ")";
            break;
        case Ending::timed_out:
            text = "did not come back in time and was ended";
            break;
        case Ending::not_started:
            return std::string("could not be started: ") + std::strerror(code);
    }
    std::string tail = error_tail;
    while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
    std::ranges::replace(tail, '\n', '|');
    return tail.empty() ? text : text + "; its last words: " + printable(tail);
}

ProbeResult run_probe(const std::function<int(std::string* output)>& work, std::chrono::milliseconds limit) {
    ProbeResult result;
    int output_pipe[2], error_pipe[2];
    if (pipe2(output_pipe, O_CLOEXEC) != 0) {
        result.code = errno;
        return result;
    }
    UniqueFd output_read(output_pipe[0]), output_write(output_pipe[1]);
    if (pipe2(error_pipe, O_CLOEXEC) != 0) {
        result.code = errno;
        return result;
    }
    UniqueFd error_read(error_pipe[0]), error_write(error_pipe[1]);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) {
        result.code = errno;
        return result;
    }
    if (child == 0) run_child(work, output_write.get(), error_write.get());
    output_write.reset();
    error_write.reset();

    const auto deadline = Clock::now() + limit;
    bool gone = false;
    int status = 0;
    while (output_read || error_read) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) break;
        pollfd fds[2] = {{output_read.get(), POLLIN, 0}, {error_read.get(), POLLIN, 0}};
        const int ready = ::poll(fds, 2, static_cast<int>(std::min(left, look_interval).count()));
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) {
            // a grandchild may keep the pipes open for ever
            if (gone) break;
            gone = waitpid(child, &status, WNOHANG) == child;
            continue;
        }
        if (fds[0].revents != 0 && !read_some(output_read.get(), result.output, most_output, false))
            output_read.reset();
        if (fds[1].revents != 0 && !read_some(error_read.get(), result.error_tail, most_tail, true)) error_read.reset();
    }
    // pipes may be closed before the end: a child that then hangs is killed as well
    while (!gone && Clock::now() < deadline) {
        gone = waitpid(child, &status, WNOHANG) == child;
        if (!gone) ::poll(nullptr, 0, 1);
    }
    if (gone) {
        fill_ending(result, status);
        return result;
    }
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.ending = ProbeResult::Ending::timed_out;
    result.code = SIGKILL;
    return result;
}

}  // namespace onebit
