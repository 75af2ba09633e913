// Starts and restarts the child; engine_watch.cpp watches it while it runs.
#include "server/supervisor/engine_process.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <future>
#include <utility>

#include "base/log.h"
#include "server/supervisor/engine_process_impl.h"

namespace onebit {
namespace {

constexpr int kFailuresBeforeReady = 3;

// A socket name is never used twice, not even by two supervisors in one folder: a client of the dead engine must not
// reach the next one.
std::filesystem::path next_socket(const std::filesystem::path& folder) {
    static std::atomic<uint64_t> count{0};
    return folder / ("engine-" + std::to_string(::getpid()) + "-" + std::to_string(++count) + ".sock");
}

}  // namespace

std::string seconds_text(milliseconds time) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(time.count()) / 1000);
    return text.data();
}

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
            status.stalled = false;
            if (!asked) {
                status.ended_by_others = ending.by_others;
                wrong_arguments = ending.for_good;
                status.last_failure = ending.reason;
                status.last_output = output;
                status.failed_member = ending.member;
                if (!ending.member.empty()) ++status.member_failures[{ending.member, ending.hung ? "hang" : "crash"}];
            }
        }
        if (stop_requested) break;
        // errors are in our log already
        if (!log.has_errors() && log_level() < LogLevel::verbose)
            for (const std::string& line : log.last_lines()) log_info("engine", options.label + ": " + line);
        failures_before_ready = ending.was_ready ? 0 : failures_before_ready + 1;
        if (exclude(ending)) failures_before_ready = 0;
        if (!options.restart || ending.for_good || failures_before_ready >= kFailuresBeforeReady) {
            log_error("engine", options.label + ": " + ending.reason + "; not started again");
            end_state = EngineState::failed;
            break;
        }
        const milliseconds delay = back_off.next(ending.served);
        log_error("engine", options.label + ": " + ending.reason + "; starting it again in " + seconds_text(delay));
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

void EngineProcess::limit_stop(Clock::time_point kill_at) {
    Clock::time_point now = impl_->kill_at;
    while (kill_at < now && !impl_->kill_at.compare_exchange_weak(now, kill_at)) {
    }
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

std::shared_ptr<StreamTable> EngineProcess::streams() const {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->heartbeat || impl_->heartbeat->page().streams.taken_up.load() == 0) return nullptr;
    return {impl_->heartbeat, &impl_->heartbeat->page().streams};
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
        return Error{ErrorCode::timeout, subject, "to be ready within " + seconds_text(limit),
                     to_string(impl_->status.state), "wait longer, or look at the log"};
    if (impl_->status.state == EngineState::ready) return {};
    const std::string failure = impl_->status.whole_failure();
    return Error{impl_->wrong_arguments ? ErrorCode::usage : ErrorCode::unavailable, subject, "a running engine",
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
