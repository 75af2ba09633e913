// Which engines run. Loads a model when a request names it, keeps it, frees the old one before the next one starts.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "server/supervisor/engine_handle.h"
#include "server/supervisor/model_target.h"

namespace onebit {

struct FleetLimits {
    uint32_t max_models = 1;
    bool fixed = false;  // one model for every name: never evicted, requests do not wait for it
    std::chrono::milliseconds load_wait{600000};      // how long a request waits for its model
    std::chrono::milliseconds failure_memory{10000};  // a failed load is not repeated before this
};

// What one engine does now, for /onebit/ps, /health, /v1/models and /metrics.
struct EngineView {
    std::string id;
    std::vector<std::string> aliases;
    ModelEntry entry;
    ModelConfig settings;
    EngineStatus status;
    std::filesystem::path socket;
    uint64_t generation = 0;
    std::vector<DeviceMemory> memory;
    TandemReport tandem;
    bool pinned = false;
    uint32_t requests = 0;                          // in flight, inference and others
    uint64_t loads = 0;                             // of this model since the supervisor's start
    double load_seconds = 0;                        // of the last load
    std::chrono::milliseconds keep_alive_left{-1};  // until unloaded; negative: for ever, or in use
    Error failure;                                  // of a load that did not succeed; expected is empty if none
    bool failed = false;
};

class Fleet {
    struct Place;

public:
    using Clock = std::chrono::steady_clock;
    // Called on a thread of the fleet's own; may take long (it asks whether the model fits).
    using MakeEngine = std::function<Result<std::unique_ptr<EngineHandle>>(const ModelTarget&)>;
    using Resolve = std::function<Result<ModelTarget>(const std::string& name)>;

    // now: replaceable for tests of the keep-alive.
    Fleet(FleetLimits limits, Resolve resolve, MakeEngine make_engine,
          std::function<Clock::time_point()> now = Clock::now);
    ~Fleet();  // stop()

    // Holds an engine in use for one request; its model is not evicted meanwhile.
    class Lease {
    public:
        Lease() = default;
        Lease(Lease&& other) noexcept;
        Lease& operator=(Lease&& other) noexcept;
        ~Lease() { release(); }
        explicit operator bool() const { return fleet_ != nullptr; }
        EngineHandle& engine() const;
        const std::string& model() const;
        void release();

    private:
        friend class Fleet;
        Fleet* fleet_ = nullptr;
        std::shared_ptr<Place> place_;
        bool inference_ = false;
    };

    // An empty name means the default model, but rather one that is loaded than one to load.
    // Waits until the model serves: loads it, and evicts the least recently used one first if there is no room. Never
    // evicts an engine with requests in flight: new requests for it queue behind, so that nobody waits for ever.
    // inference: counts for the keep-alive and for the watch over hangs. gone: the client has left (asked while
    // waiting). Errors: of resolve and make_engine; unavailable (loading a fixed model, failed, stopping; found tells),
    // timeout, conflict (every place is pinned), cancelled (gone). *retry_after: when to come again, if that makes
    // sense.
    Result<Lease> acquire(const std::string& name, bool inference, const std::function<bool()>& gone,
                          std::chrono::milliseconds* retry_after = nullptr);

    // An engine that is ready now, without loading anything: of `name`, or for an empty name of the default model if it
    // is loaded, else the one used last. Error unavailable if there is none.
    Result<Lease> acquire_loaded(const std::string& name, bool inference);

    // Starts to load without waiting. Error as acquire, but never waits for room: then conflict.
    Result<void> load(const std::string& name);
    // Waits for its requests to end, then frees it; returns when the process is gone. Error not_found, conflict
    // (fixed).
    Result<void> unload(const std::string& name, std::chrono::milliseconds limit);

    // Called on a thread of the fleet's own when a load has failed; set before the first load.
    void set_load_failed(std::function<void(const std::string& id, const Error& error)> handler) {
        load_failed_ = std::move(handler);
    }

    // Unloads what nobody used for its keep-alive time. Called by the fleet's own thread; also by tests.
    void tick();
    // New settings: engines whose model's settings changed are replaced at their next idle moment.
    void reconfigure(FleetLimits limits, const Resolve& resolve);

    std::vector<EngineView> engines() const;
    uint32_t requests_in_flight() const;
    bool fixed() const;
    bool any_ever_ready() const { return ever_ready_; }
    // Stops all engines, and kills at that time those that are still there; running requests end with an error. No
    // acquire succeeds afterwards.
    void stop(Clock::time_point kill_at = Clock::time_point::max());
    void limit_stop(Clock::time_point kill_at);  // of a stop() that runs
    void stop_accepting();                       // acquire fails from now on, engines go on

private:
    enum class Phase { loading, running, leaving, failed };
    struct Place {
        ModelTarget target;
        Phase phase = Phase::loading;
        std::unique_ptr<EngineHandle> engine;  // set once made; stays until the place is destroyed
        std::thread loader;
        Error failure;
        Clock::time_point failed_at, last_used, load_started;
        double load_seconds = 0;
        uint32_t in_flight = 0, waiting = 0;
        bool stale = false;        // its settings changed
        bool wanted_away = false;  // queued for eviction: new requests wait
    };
    using PlacePtr = std::shared_ptr<Place>;

    PlacePtr find(const std::string& id) const;
    PlacePtr find_by_name(const std::string& name) const;
    PlacePtr last_used_ready() const;
    void start_loading(const ModelTarget& target);
    void load_on_thread(const PlacePtr& place);
    void remove(std::unique_lock<std::mutex>& lock, PlacePtr place);
    PlacePtr pick_victim();
    void release(const PlacePtr& place, bool inference);
    Result<Lease> make_lease(const PlacePtr& place, bool inference);
    void run_reaper();
    static bool idle(const Place& place) { return place.in_flight == 0 && place.waiting == 0; }

    FleetLimits limits_;
    Resolve resolve_;
    MakeEngine make_engine_;
    std::function<void(const std::string&, const Error&)> load_failed_;
    std::function<Clock::time_point()> now_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::list<PlacePtr> places_;
    std::map<std::string, std::string> known_names_;  // name of a request -> id, while that model has a place
    std::map<std::string, uint64_t> loads_;
    bool stopping_ = false, closed_ = false;
    Clock::time_point kill_at_ = Clock::time_point::max();  // of engines that stop
    std::atomic<bool> ever_ready_{false};
    std::thread reaper_;
};

}  // namespace onebit
