// Watches one child from its start to its end: its output, whether it is ready, whether it hangs.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/log.h"
#include "server/supervisor/engine_process_impl.h"

namespace onebit {
namespace {

// A tick reads counters and costs next to nothing; a sample reads files of /proc.
constexpr milliseconds kStartTick{100}, kBusyTick{200}, kIdleTick{1000}, kSample{1000}, kStartSample{300};

milliseconds since(Clock::time_point start) { return std::chrono::duration_cast<milliseconds>(Clock::now() - start); }

// Signals that no fault of the process itself raises. SIGBUS: the model's file got shorter, or its disk failed.
bool sent_by_others(int signal) {
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
           signal == SIGBUS;
}

}  // namespace

void EngineProcess::Impl::read_output(Watched& w) {
    std::array<char, 16384> buffer;
    while (w.child.output) {
        const ssize_t size = ::read(w.child.output.get(), buffer.data(), buffer.size());
        if (size > 0) {
            log.append({buffer.data(), static_cast<size_t>(size)});
        } else if (size < 0 && errno == EINTR) {
            continue;
        } else {
            if (size == 0) w.child.output.reset();
            return;
        }
    }
}

// Without reaping: the zombie keeps its process group's number from being given to another.
std::optional<int> EngineProcess::Impl::exit_status(const Watched& w) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(w.child.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return std::nullopt;
    ::kill(-w.child.pid, SIGKILL);  // what it started itself
    int status = 0;
    while (::waitpid(w.child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

void EngineProcess::Impl::kill_now(Watched& w) {
    w.killed = true;
    kill_child(w.child.pid, SIGKILL);
}

milliseconds EngineProcess::Impl::tick_interval(const Watched& w) const {
    if (!w.child.pidfd || !w.ready || w.terminated) return kStartTick;
    if (in_flight.load(std::memory_order_relaxed) > 0) return kBusyTick;
    const auto& page = w.heartbeat->page();
    const bool open =
        page.graphs_begun.load(std::memory_order_relaxed) != page.graphs_done.load(std::memory_order_relaxed);
    return open ? kBusyTick : std::min(kIdleTick, milliseconds(options.hang_timeout) / 4);
}

void EngineProcess::Impl::on_ready(Watched& w) {
    w.ready = true;
    w.ready_since = Clock::now();
    w.stall.reset();
    auto& page = w.heartbeat->page();
    page.load_permille.store(1000, std::memory_order_relaxed);
    page.ready.store(1, std::memory_order_release);
    log_info("engine",
             options.label + ": ready after " + seconds_text(since(w.begun)) + ", pid " + std::to_string(w.child.pid));
    take_sample(w);  // who sees it ready sees what it takes
    set_state(EngineState::ready);
}

void EngineProcess::Impl::probe_health(Watched& w) {
    const auto now = Clock::now();
    if (w.probe.running() || now < w.next_health) return;
    w.next_health = now + (now - w.begun < seconds(10) ? kStartTick : kStartTick * 5);
    w.probe.start(w.socket, "/health");
}

void EngineProcess::Impl::take_probe_answer(Watched& w) {
    const int answer = w.probe.advance();
    if (answer <= 0) return;
    if (w.ready) {
        ++w.signs.answers;
    } else if (answer == 200 && !w.terminated && !w.killed) {
        on_ready(w);
    }
}

// Kills the child when nothing moves for longer than the limit of what it does now.
void EngineProcess::Impl::judge(Watched& w) {
    const auto& page = w.heartbeat->page();
    const uint64_t answers = w.signs.answers, disk = w.signs.disk_bytes;
    w.signs = signs_of(page);
    w.signs.disk_bytes = disk;
    w.signs.answers = answers;
    const milliseconds stalled = w.stall.observe(w.signs, Clock::now());

    const bool stopped_by_signal = w.sample.state == 'T';
    milliseconds limit = w.ready ? present_limit(options.hang_timeout, page) : milliseconds(options.start_timeout);
    if (stopped_by_signal) limit = std::min(limit, milliseconds(options.hang_timeout));
    const uint64_t requests = in_flight.load(std::memory_order_relaxed);
    const bool open = w.signs.graphs_begun != w.signs.graphs_done;
    if (stalled < limit / 2) w.asked.reset();
    {
        const std::lock_guard lock(mutex);
        status.stalled = w.ready && stalled >= limit / 2;
    }
    // a standstill is only believed after a question that had time to be answered
    const bool asked_long_ago = w.asked && Clock::now() - *w.asked >= limit / 2;
    if (stalled >= limit && (asked_long_ago || !w.ready || stopped_by_signal)) {
        w.hang = "no progress for " + seconds_text(stalled) + " (limit " + seconds_text(limit) + ") " +
                 (stopped_by_signal ? "because a signal stopped it"
                  : !w.ready        ? "while loading"
                  : open            ? "inside a graph"
                                    : "and no answer from its request loop") +
                 (requests > 0 ? ", " + std::to_string(requests) + " requests in flight" : "");
        log_error("engine", options.label + ": hung: " + w.hang + "; killing it");
        {
            const std::lock_guard lock(mutex);
            ++status.hangs;
        }
        w.stopped_by_signal = stopped_by_signal;
        kill_now(w);
        return;
    }
    // A loop that answers is alive even if no graph runs: its clients may be slow readers. /lora-adapters is answered
    // by the thread that runs the graphs and changes nothing; /health does not wake a model that sleeps.
    if (!w.ready || stalled < limit / 2) return;
    if (!w.asked) w.asked = Clock::now();
    if (!w.probe.running()) w.probe.start(w.socket, requests > 0 || open ? "/lora-adapters" : "/health");
}

void EngineProcess::Impl::take_sample(Watched& w) {
    w.next_sample = Clock::now() + (w.ready ? kSample : kStartSample);
    w.signs.disk_bytes = disk_bytes_read(w.child.pid);
    w.sample = sample_child(w.child.pid);
    if (!w.sample.valid) return;
    if (w.sample.resident_bytes > 0) w.last_resident = w.sample.resident_bytes;
    const std::lock_guard lock(mutex);
    status.resident_bytes = w.sample.resident_bytes;
    status.cpu_milliseconds = w.sample.cpu_milliseconds;
}

void EngineProcess::Impl::tick(Watched& w) {
    if (Clock::now() >= w.next_sample) take_sample(w);
    if (stop_requested && !w.terminated) {
        w.terminated = true;
        w.asked_to_end = Clock::now();
        set_state(EngineState::stopping);
        ::kill(w.child.pid, SIGTERM);
        ::kill(w.child.pid, SIGCONT);  // a stopped process would not see it
    }
    if (w.terminated) {
        if (!w.killed && Clock::now() >= std::min(w.asked_to_end + options.stop_timeout, kill_at.load())) {
            log_warning("engine", options.label + ": did not end within " + seconds_text(since(w.asked_to_end)) +
                                      " of SIGTERM; killing it");
            kill_now(w);
        }
        return;
    }
    if (w.killed) return;
    if (!w.ready) probe_health(w);
    judge(w);
}

EngineProcess::Impl::Ending EngineProcess::Impl::watch(Watched& w) {
    std::optional<int> exit;
    while (!(exit = exit_status(w))) {
        std::array<pollfd, 4> fds{pollfd{w.child.pidfd.get(), POLLIN, 0}, pollfd{wake.get(), POLLIN, 0},
                                  pollfd{w.child.output.get(), POLLIN, 0}, pollfd{w.probe.fd(), POLLIN, 0}};
        if (stop_requested) fds[1].fd = -1;  // stays readable from then on
        const auto wait = std::chrono::ceil<milliseconds>(w.next_tick - Clock::now());
        ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp(wait, milliseconds(0), kIdleTick).count()));
        if (fds[2].revents != 0) read_output(w);
        if (fds[3].revents != 0) take_probe_answer(w);
        if (Clock::now() >= w.next_tick || (stop_requested && !w.terminated)) {
            tick(w);
            w.next_tick = Clock::now() + tick_interval(w);
        }
    }
    read_output(w);
    log.finish();
    std::error_code ignored;
    std::filesystem::remove(w.socket, ignored);

    Ending ending;
    ending.was_ready = w.ready;
    ending.hung = !w.hang.empty();
    if (w.ready) ending.served = since(w.ready_since);
    ending.reason = ending.hung ? "hung: " + w.hang + ", killed" : describe_exit(*exit, w.killed, w.last_resident);
    // a wrong argument stays wrong
    ending.for_good =
        !w.ready && WIFEXITED(*exit) &&
        (WEXITSTATUS(*exit) == exit_code(ErrorCode::usage) || (WEXITSTATUS(*exit) != 0 && log.tells_wrong_arguments()));
    ending.by_others = w.stopped_by_signal || (!w.killed && WIFSIGNALED(*exit) && sent_by_others(WTERMSIG(*exit)));
    if (!ending.hung && !w.ready) ending.reason += " before it was ready";
    ending.member =
        blamed_member(w.heartbeat->page(), {*exit, w.killed || w.terminated, ending.hung, w.stopped_by_signal});
    if (!ending.member.empty()) ending.reason = "member " + ending.member + " failed: " + ending.reason;
    return ending;
}

}  // namespace onebit
