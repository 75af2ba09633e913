#include "server/supervisor/engine_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"
#include "server/supervisor/child_process.h"
#include "server/supervisor/engine_log.h"
#include "server/supervisor/hang_detector.h"
#include "server/supervisor/heartbeat.h"
#include "server/supervisor/http_probe.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A tick reads counters and costs next to nothing; a sample reads files of /proc.
constexpr milliseconds kStartTick{100}, kBusyTick{200}, kIdleTick{1000}, kSample{1000}, kStartSample{300};
constexpr milliseconds kLongestObservation{2000};
constexpr int kFailuresBeforeReady = 3;

milliseconds since(Clock::time_point start) { return std::chrono::duration_cast<milliseconds>(Clock::now() - start); }

std::string to_seconds(milliseconds time) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(time.count()) / 1000);
    return text.data();
}

// A socket name is never used twice, not even by two supervisors in one folder: a client of the dead engine must not
// reach the next one.
std::filesystem::path next_socket(const std::filesystem::path& folder) {
    static std::atomic<uint64_t> count{0};
    return folder / ("engine-" + std::to_string(::getpid()) + "-" + std::to_string(++count) + ".sock");
}

}  // namespace

const char* to_string(EngineState state) {
    switch (state) {
        case EngineState::starting:
            return "starting";
        case EngineState::ready:
            return "ready";
        case EngineState::stopping:
            return "stopping";
        case EngineState::stopped:
            return "stopped";
        case EngineState::failed:
            return "failed";
    }
    return "unknown";
}

struct EngineProcess::Impl {
    explicit Impl(EngineOptions given) : options(std::move(given)), log(options.label) {
        status.excluded = options.excluded;
    }

    // How one child ended.
    struct Ending {
        bool was_ready = false, hung = false, for_good = false;
        milliseconds served{0};
        std::string reason, member;
    };
    // The child being watched; belongs to the watcher thread.
    struct Watched {
        ChildProcess child;
        std::shared_ptr<Heartbeat> heartbeat;
        std::filesystem::path socket;
        HttpProbe probe;
        std::optional<Clock::time_point> asked;  // when the first probe of this standstill was due
        StallClock stall{kLongestObservation};
        ProgressSigns signs;
        ChildSample sample;
        uint64_t last_resident = 0;
        Clock::time_point begun = Clock::now(), ready_since, next_tick, next_sample, next_health, terminate_at;
        bool ready = false, killed = false, terminated = false, stopped_by_signal = false;
        std::string hang;
    };

    const EngineOptions options;
    UniqueFd wake;
    std::atomic<bool> stop_requested{false};
    std::atomic<uint64_t> in_flight{0};
    std::thread watcher;
    EngineLog log;  // the watcher's

    mutable std::mutex mutex;  // guards what follows
    mutable std::condition_variable changed;
    EngineStatus status;
    std::filesystem::path socket;
    uint64_t generation = 0;
    std::shared_ptr<Heartbeat> heartbeat;
    Clock::time_point retry_at;
    bool done = false;  // the watcher has ended

    // The engine does no work of its own while there are any.
    void show_requests() const {
        const std::lock_guard lock(mutex);
        if (heartbeat) heartbeat->page().requests.store(in_flight.load(std::memory_order_relaxed));
    }

    void set_state(EngineState state) {
        const std::lock_guard lock(mutex);
        status.state = state;
        changed.notify_all();
    }

    void run(std::promise<Result<void>> first);
    Result<void> spawn(Watched& w);
    Ending watch(Watched& w);
    void take_sample(Watched& w);
    void tick(Watched& w);
    void probe_health(Watched& w);
    void judge(Watched& w);
    void on_ready(Watched& w);
    void read_output(Watched& w);
    void take_probe_answer(Watched& w);
    std::optional<int> exit_status(const Watched& w);
    void kill_now(Watched& w);
    bool exclude(const Ending& ending);
    bool wait_before_restart(milliseconds delay);
    milliseconds tick_interval(const Watched& w) const;
};

Result<void> EngineProcess::Impl::spawn(Watched& w) {
    auto page = Heartbeat::create();
    if (!page) return std::move(page).error();
    w.heartbeat = std::make_shared<Heartbeat>(std::move(*page));
    w.socket = next_socket(options.runtime_folder);
    log.clear();
    std::vector<std::string> arguments{"engine", "--socket", w.socket.string(), "--heartbeat-fd",
                                       std::to_string(w.heartbeat->fd())};
    const auto excluded = exclusion_arguments(status.excluded);  // only this thread changes them
    arguments.insert(arguments.end(), excluded.begin(), excluded.end());
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
    auto child = spawn_child(options.program, arguments, w.heartbeat->fd());
    if (!child) return std::move(child).error();
    w.child = std::move(*child);
    const std::lock_guard lock(mutex);
    socket = w.socket;
    heartbeat = w.heartbeat;
    ++generation;
    status.pid = w.child.pid;
    status.state = EngineState::starting;
    status.retry_after = milliseconds(0);
    status.resident_bytes = status.cpu_milliseconds = 0;
    retry_at = {};
    changed.notify_all();
    return {};
}

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
             options.label + ": ready after " + to_seconds(since(w.begun)) + ", pid " + std::to_string(w.child.pid));
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
    // a standstill is only believed after a question that had time to be answered
    const bool asked_long_ago = w.asked && Clock::now() - *w.asked >= limit / 2;
    if (stalled >= limit && (asked_long_ago || !w.ready || stopped_by_signal)) {
        w.hang = "no progress for " + to_seconds(stalled) + " (limit " + to_seconds(limit) + ") " +
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
        w.terminate_at = Clock::now() + options.stop_timeout;
        set_state(EngineState::stopping);
        ::kill(w.child.pid, SIGTERM);
        ::kill(w.child.pid, SIGCONT);  // a stopped process would not see it
    }
    if (w.terminated) {
        if (!w.killed && Clock::now() >= w.terminate_at) {
            log_warning("engine", options.label + ": did not end within " + to_seconds(options.stop_timeout) +
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
    ending.for_good = !w.ready && WIFEXITED(*exit) && WEXITSTATUS(*exit) == exit_code(ErrorCode::usage);
    if (!ending.hung && !w.ready) ending.reason += " before it was ready";
    ending.member =
        blamed_member(w.heartbeat->page(), {*exit, w.killed || w.terminated, ending.hung, w.stopped_by_signal});
    if (!ending.member.empty()) ending.reason = "member " + ending.member + " failed: " + ending.reason;
    return ending;
}

// The next child does without the member that ended this one. False when there is none, or strict forbids it.
bool EngineProcess::Impl::exclude(const Ending& ending) {
    if (ending.member.empty() || options.strict) return false;
    log_warning("engine", options.label + ": from now on without member " + ending.member);
    const std::lock_guard lock(mutex);
    status.excluded.push_back({ending.member, ending.reason});
    return true;
}

// Returns false when stop() came first.
bool EngineProcess::Impl::wait_before_restart(milliseconds delay) {
    const auto until = Clock::now() + delay;
    {
        const std::lock_guard lock(mutex);
        retry_at = until;
    }
    while (!stop_requested) {
        const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
        if (left <= milliseconds(0)) return true;
        pollfd fd{wake.get(), POLLIN, 0};
        ::poll(&fd, 1, static_cast<int>(left.count()));
    }
    return false;
}

void EngineProcess::Impl::run(std::promise<Result<void>> first) {
    RestartBackOff back_off;
    int failures_before_ready = 0;
    bool is_first = true;
    EngineState end_state = EngineState::stopped;
    while (!stop_requested || is_first) {
        Watched w;
        Ending ending;
        auto spawned = spawn(w);
        if (is_first) {
            const bool ok = spawned.ok();
            first.set_value(std::move(spawned));
            is_first = false;
            if (!ok) break;
            ending = watch(w);
        } else if (spawned.ok()) {
            ending = watch(w);
        } else {
            ending.reason = spawned.error().message();
        }
        const std::string output = log.summary();
        const bool asked = stop_requested && !ending.hung;
        {
            const std::lock_guard lock(mutex);
            status.pid = 0;
            status.resident_bytes = 0;
            if (!asked) {
                status.last_failure = output.empty() ? ending.reason : ending.reason + ":\n" + output;
                status.failed_member = ending.member;
                if (!ending.member.empty()) ++status.member_failures[{ending.member, ending.hung ? "hang" : "crash"}];
            }
        }
        if (stop_requested) break;
        failures_before_ready = ending.was_ready ? 0 : failures_before_ready + 1;
        if (exclude(ending)) failures_before_ready = 0;
        if (!options.restart || ending.for_good || failures_before_ready >= kFailuresBeforeReady) {
            log_error("engine", options.label + ": " + ending.reason + "; not started again");
            end_state = EngineState::failed;
            break;
        }
        const milliseconds delay = back_off.next(ending.served);
        log_error("engine", options.label + ": " + ending.reason + "; starting it again in " + to_seconds(delay));
        set_state(EngineState::starting);
        if (!wait_before_restart(delay)) break;
        const std::lock_guard lock(mutex);
        ++status.restarts;
    }
    const std::lock_guard lock(mutex);
    status.state = end_state;
    status.pid = 0;
    heartbeat.reset();
    done = true;
    changed.notify_all();
}

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(EngineOptions options) {
    const std::string path = next_socket(options.runtime_folder).string() + "0000";  // room for longer numbers
    if (path.size() > longest_socket_path())
        return Error{
            ErrorCode::usage, "runtime folder " + options.runtime_folder.string(),
            "a path short enough for a Unix socket, at most " + std::to_string(longest_socket_path()) + " bytes",
            std::to_string(path.size()) + " bytes with the socket's name", "set XDG_RUNTIME_DIR to a shorter path"};
    auto impl = std::make_unique<Impl>(std::move(options));
    impl->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!impl->wake) return error_from_errno(errno, "eventfd");
    impl->status.state = EngineState::starting;
    std::promise<Result<void>> first;
    auto started = first.get_future();
    // one thread starts every child and outlives it: the kernel kills the child when that thread ends
    try {
        impl->watcher =
            std::thread([raw = impl.get(), first = std::move(first)]() mutable { raw->run(std::move(first)); });
    } catch (const std::system_error& error) {
        return error_from_errno(error.code().value(), "thread that watches the engine");
    }
    auto result = started.get();
    if (!result) {
        impl->watcher.join();
        return std::move(result).error();
    }
    return std::unique_ptr<EngineProcess>(new EngineProcess(std::move(impl)));
}

EngineProcess::EngineProcess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EngineProcess::~EngineProcess() {
    stop();
    impl_->watcher.join();
}

void EngineProcess::stop() {
    impl_->stop_requested = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(impl_->wake.get(), &one, sizeof one);
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock, [this] { return impl_->done; });
}

EngineStatus EngineProcess::status() const {
    const std::lock_guard lock(impl_->mutex);
    EngineStatus status = impl_->status;
    if (impl_->heartbeat) {
        const auto& page = impl_->heartbeat->page();
        status.graphs = page.graphs_done.load(std::memory_order_relaxed);
        status.pipelines = page.pipelines.load(std::memory_order_relaxed);
        status.load_steps = page.load_steps.load(std::memory_order_relaxed);
        status.load_progress = static_cast<double>(page.load_permille.load(std::memory_order_relaxed)) / 1000;
    }
    if (status.state == EngineState::starting && impl_->retry_at != Clock::time_point{})
        status.retry_after = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(impl_->retry_at - Clock::now()));
    return status;
}

std::filesystem::path EngineProcess::socket() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->socket;
}

uint64_t EngineProcess::generation() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->generation;
}

std::vector<DeviceMemory> EngineProcess::memory() const {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->heartbeat) return {};
    return read_placement(impl_->heartbeat->page().placement);
}

TandemReport EngineProcess::tandem() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->heartbeat ? read_tandem(impl_->heartbeat->page().tandem) : TandemReport{};
}

Result<void> EngineProcess::wait_ready(milliseconds limit) const {
    std::unique_lock lock(impl_->mutex);
    const auto decided = [this] {
        const EngineState state = impl_->status.state;
        return state == EngineState::ready || state == EngineState::failed || state == EngineState::stopped ||
               state == EngineState::stopping;
    };
    const std::string subject = "engine of " + impl_->options.label;
    if (!impl_->changed.wait_for(lock, limit, decided))
        return Error{ErrorCode::timeout, subject, "to be ready within " + to_seconds(limit),
                     to_string(impl_->status.state), "wait longer, or look at the log"};
    if (impl_->status.state == EngineState::ready) return {};
    const std::string& failure = impl_->status.last_failure;
    return Error{ErrorCode::unavailable, subject, "a running engine",
                 failure.empty() ? std::string(to_string(impl_->status.state)) : failure, ""};
}

void EngineProcess::request_begun() {
    impl_->in_flight.fetch_add(1, std::memory_order_relaxed);
    impl_->show_requests();
}

void EngineProcess::request_ended() {
    impl_->in_flight.fetch_sub(1, std::memory_order_relaxed);
    impl_->show_requests();
}

milliseconds EngineProcess::present_hang_timeout() const {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->heartbeat || impl_->status.state == EngineState::starting) return impl_->options.start_timeout;
    return present_limit(impl_->options.hang_timeout, impl_->heartbeat->page());
}

}  // namespace onebit
