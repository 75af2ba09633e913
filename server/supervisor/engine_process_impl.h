// The inside of EngineProcess: what its watcher thread knows of the child. For engine_process.cpp and engine_watch.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "server/supervisor/child_process.h"
#include "server/supervisor/engine_log.h"
#include "server/supervisor/engine_process.h"
#include "server/supervisor/hang_detector.h"
#include "server/supervisor/heartbeat.h"
#include "server/supervisor/http_probe.h"

namespace onebit {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// "1.5 s"
std::string seconds_text(milliseconds time);

struct EngineProcess::Impl {
    explicit Impl(EngineOptions given) : options(std::move(given)), log(options.label) {
        status.excluded = options.excluded;
    }

    // How one child ended.
    struct Ending {
        bool was_ready = false, hung = false, for_good = false, by_others = false;
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
        StallClock stall{milliseconds(2000)};    // the longest step that counts
        ProgressSigns signs;
        ChildSample sample;
        uint64_t last_resident = 0;
        Clock::time_point begun = Clock::now(), ready_since, next_tick, next_sample, next_health, asked_to_end;
        bool ready = false, killed = false, terminated = false, stopped_by_signal = false;
        std::string hang;
    };

    const EngineOptions options;
    UniqueFd wake;
    std::atomic<bool> stop_requested{false};
    std::atomic<Clock::time_point> kill_at{Clock::time_point::max()};  // of a stop
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
    bool done = false;             // the watcher has ended
    bool wrong_arguments = false;  // the engine does not take what it was given

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

}  // namespace onebit
