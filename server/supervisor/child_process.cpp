#include "server/supervisor/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace onebit {
namespace {

// Reads a small file of /proc whole; empty when it is gone.
std::string read_small(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    std::array<char, 2048> buffer;
    ssize_t size;
    do size = ::read(fd.get(), buffer.data(), buffer.size());
    while (size < 0 && errno == EINTR);
    return size > 0 ? std::string(buffer.data(), static_cast<size_t>(size)) : std::string();
}

template <typename T>
T number(std::string_view text) {
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

struct ChildPlan {
    const char* program;
    char* const* argv;
    const char* oom_score;
    size_t oom_score_size;
    pid_t parent;
    int null_fd, output_fd, error_fd, inherited;
};

// After fork in a process of many threads: system calls only, no memory allocation.
[[noreturn]] void run_child(const ChildPlan& plan) {
    const auto give_up = [&plan] {
        const int error = errno;
        [[maybe_unused]] const ssize_t told = ::write(plan.error_fd, &error, sizeof error);
        ::_exit(127);
    };
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();
    if (::getppid() != plan.parent) ::_exit(127);  // it died before the line above
    ::setpgid(0, 0);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int oom = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (oom >= 0) {
        // refused in some sandboxes; the engine works without it
        [[maybe_unused]] const ssize_t written = ::write(oom, plan.oom_score, plan.oom_score_size);
        ::close(oom);
    }
    if (::dup2(plan.null_fd, 0) < 0 || ::dup2(plan.output_fd, 1) < 0 || ::dup2(plan.output_fd, 2) < 0) give_up();
#ifdef SYS_close_range
    ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
#endif
    if (plan.inherited >= 0 && ::fcntl(plan.inherited, F_SETFD, 0) != 0) give_up();
    ::execv(plan.program, plan.argv);
    give_up();
    ::_exit(127);
}

// A descriptor above the standard three, so that dup2 onto those cannot destroy it.
UniqueFd above_standard(UniqueFd fd) {
    if (!fd || fd.get() > 2) return fd;
    return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

int child_oom_score_adj(int own) { return std::clamp(own + 500, 500, 1000); }

Result<ChildProcess> spawn_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                                 int inherited) {
    int output[2], failure[2];
    if (::pipe2(output, O_CLOEXEC) != 0) return error_from_errno(errno, "pipe for the engine's output");
    UniqueFd output_read(output[0]), output_write = above_standard(UniqueFd(output[1]));
    if (::pipe2(failure, O_CLOEXEC) != 0) return error_from_errno(errno, "pipe for starting the engine");
    UniqueFd failure_read(failure[0]), failure_write = above_standard(UniqueFd(failure[1]));
    UniqueFd null_fd = above_standard(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    if (!output_write || !failure_write || !null_fd) return error_from_errno(errno, "descriptors for the engine");
    if (::fcntl(output_read.get(), F_SETFL, O_NONBLOCK) != 0)
        return error_from_errno(errno, "pipe of the engine's output");

    std::string path = program.string();
    std::vector<std::string> words = arguments;
    std::vector<char*> argv{path.data()};
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string oom = std::to_string(child_oom_score_adj(number<int>(read_small("/proc/self/oom_score_adj"))));
    const ChildPlan plan{path.c_str(),  argv.data(),        oom.data(),          oom.size(), ::getpid(),
                         null_fd.get(), output_write.get(), failure_write.get(), inherited};

    // no handler of ours may run in the child before it has reset them
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = ::fork();
    if (pid == 0) run_child(plan);
    const int fork_error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) return error_from_errno(fork_error, "fork of the engine");
    ::setpgid(pid, pid);  // whichever of the two comes first

    failure_write.reset();
    int error = 0;
    ssize_t size;
    do size = ::read(failure_read.get(), &error, sizeof error);
    while (size < 0 && errno == EINTR);
    if (size == sizeof error) {
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        return error_from_errno(error, path);
    }
    ChildProcess child;
    child.pid = pid;
    child.output = std::move(output_read);
#ifdef SYS_pidfd_open
    child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)));
#endif
    return child;
}

void kill_child(pid_t pid, int signal) {
    if (pid <= 0) return;
    if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

ChildSample sample_child(pid_t pid) {
    ChildSample sample;
    const std::string text = read_small("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = text.rfind(')');  // the name may hold spaces and brackets
    if (name_end == std::string::npos) return sample;
    std::array<std::string_view, 24> field{};  // field[0] is the state, the third of the line
    size_t count = 0;
    std::string_view rest = std::string_view(text).substr(name_end + 1);
    while (count < field.size() && !rest.empty()) {
        rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
        const size_t end = std::min(rest.find_first_of(" \n"), rest.size());
        if (end > 0) field[count++] = rest.substr(0, end);
        rest.remove_prefix(end);
    }
    if (count < 22 || field[0].empty()) return sample;
    sample.state = field[0][0];
    sample.valid = sample.state != 'Z' && sample.state != 'X';
    static const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    static const uint64_t ticks = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    sample.cpu_milliseconds = (number<uint64_t>(field[11]) + number<uint64_t>(field[12])) * 1000 / ticks;
    sample.resident_bytes = number<uint64_t>(field[21]) * page;
    return sample;
}

std::string describe_exit(int status, bool by_us, uint64_t resident) {
    const std::string memory =
        resident > 0 ? ", " + std::to_string(resident >> 20) + " MiB" + " resident when last seen" : "";
    if (WIFEXITED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    std::string text = "killed by signal " + std::to_string(signal);
    if (signal == SIGKILL) return by_us ? text : text + " (out of memory?)" + memory;
    const char* name = sigdescr_np(signal);
    if (name != nullptr) text += std::string(" (") + name + ")";
    return text + memory;
}

uint64_t disk_bytes_read(pid_t pid) {
    const std::string text = read_small("/proc/" + std::to_string(pid) + "/io");
    constexpr std::string_view kKey = "read_bytes: ";
    const size_t at = text.find(kKey);
    return at == std::string::npos ? 0 : number<uint64_t>(std::string_view(text).substr(at + kKey.size()));
}

}  // namespace onebit
