#include "server/supervisor/fleet.h"

#include <algorithm>

#include "base/log.h"

namespace onebit {
namespace {

constexpr auto kStep = std::chrono::milliseconds(50);   // between looks at what no condition variable tells of
constexpr auto kLongBackOff = std::chrono::seconds(5);  // of a crashing engine: better told than waited for

Error unavailable(const std::string& id, std::string found, std::string remedy = {}) {
    return Error{ErrorCode::unavailable, "model '" + id + "'", "a loaded model", std::move(found), std::move(remedy)};
}

}  // namespace

Fleet::Fleet(FleetLimits limits, Resolve resolve, MakeEngine make_engine, std::function<Clock::time_point()> now)
    : limits_(limits), resolve_(std::move(resolve)), make_engine_(std::move(make_engine)), now_(std::move(now)) {
    limits_.max_models = std::max(limits_.max_models, 1u);
    reaper_ = std::thread([this] { run_reaper(); });
}

Fleet::~Fleet() { stop(); }

Fleet::Lease::Lease(Lease&& other) noexcept
    : fleet_(std::exchange(other.fleet_, nullptr)), place_(std::move(other.place_)), inference_(other.inference_) {}

Fleet::Lease& Fleet::Lease::operator=(Lease&& other) noexcept {
    if (this != &other) {
        release();
        fleet_ = std::exchange(other.fleet_, nullptr);
        place_ = std::move(other.place_);
        inference_ = other.inference_;
    }
    return *this;
}

EngineHandle& Fleet::Lease::engine() const { return *place_->engine; }
const std::string& Fleet::Lease::model() const { return place_->target.id; }

void Fleet::Lease::release() {
    if (Fleet* fleet = std::exchange(fleet_, nullptr)) fleet->release(place_, inference_);
    place_.reset();
}

Fleet::PlacePtr Fleet::find(const std::string& id) const {
    for (const PlacePtr& place : places_)
        if (place->target.id == id) return place;
    return nullptr;
}

Fleet::PlacePtr Fleet::find_by_name(const std::string& name) const {
    if (limits_.fixed) return places_.empty() ? nullptr : places_.front();
    auto known = known_names_.find(name);
    return known == known_names_.end() ? nullptr : find(known->second);
}

Result<Fleet::Lease> Fleet::make_lease(const PlacePtr& place, bool inference) {
    place->in_flight++;
    if (inference) place->engine->request_begun();
    Lease lease;
    lease.fleet_ = this;
    lease.place_ = place;
    lease.inference_ = inference;
    return lease;
}

void Fleet::release(const PlacePtr& place, bool inference) {
    if (inference) place->engine->request_ended();
    std::lock_guard lock(mutex_);
    place->in_flight--;
    if (inference) place->last_used = now_();
    changed_.notify_all();
}

// Caller holds the lock and has made sure of room.
void Fleet::start_loading(const ModelTarget& target) {
    auto place = std::make_shared<Place>();
    place->target = target;
    place->load_started = Clock::now();
    place->last_used = now_();
    loads_[target.id]++;
    places_.push_back(place);
    place->loader = std::thread([this, place] { load_on_thread(place); });
}

void Fleet::load_on_thread(const PlacePtr& place) {
    const std::string id = place->target.id;
    log_info("server", "model " + id + ": loading");
    Result<std::unique_ptr<EngineHandle>> made = make_engine_(place->target);
    EngineHandle* engine = nullptr;
    {
        std::lock_guard lock(mutex_);
        if (made.ok()) {
            place->engine = std::move(*made);
            engine = place->engine.get();
            engine->limit_stop(kill_at_);
        } else {
            place->failure = made.error();
            place->failed_at = now_();
            place->phase = Phase::failed;
        }
        changed_.notify_all();
    }
    if (!engine) {
        log_error("server", "model " + id + ": " + made.error().message());
        if (load_failed_) load_failed_(id, made.error());
        return;
    }
    for (;;) {
        Result<void> ready = engine->wait_ready(std::chrono::milliseconds(500));
        std::unique_lock lock(mutex_);
        if (place->phase != Phase::loading || stopping_) break;
        if (ready.ok()) {
            place->phase = Phase::running;
            ever_ready_ = true;
            place->last_used = now_();
            place->load_seconds = std::chrono::duration<double>(Clock::now() - place->load_started).count();
            log_info("server", "model " + id + ": ready");
            break;
        }
        if (ready.error().code != ErrorCode::timeout) {
            place->phase = Phase::failed;
            place->failure = ready.error();
            // requests are told this: the cause, not the engine's own lines
            if (const EngineStatus status = engine->status(); !status.last_failure.empty()) {
                place->failure.found = status.last_failure;
                if (!status.last_output.empty()) place->failure.remedy = "the server's log and 1bit ps say more";
            }
            // wrong arguments are the server's, not those of a request
            if (place->failure.code == ErrorCode::usage) place->failure.code = ErrorCode::unavailable;
            place->failed_at = now_();
            log_error("server", "model " + id + ": " + ready.error().message());
            changed_.notify_all();
            lock.unlock();
            if (load_failed_) load_failed_(id, ready.error());
            return;
        }
    }
    changed_.notify_all();
}

Fleet::PlacePtr Fleet::last_used_ready() const {
    PlacePtr best;
    for (const PlacePtr& place : places_) {
        if (place->phase != Phase::running || place->wanted_away || place->stale) continue;
        if (place->engine->status().state != EngineState::ready) continue;
        if (!best || place->last_used > best->last_used) best = place;
    }
    return best;
}

// Takes a place away: the process is gone before the place is. Caller holds the lock; it is released meanwhile.
void Fleet::remove(std::unique_lock<std::mutex>& lock, PlacePtr place) {
    place->phase = Phase::leaving;
    EngineHandle* engine = place->engine.get();
    lock.unlock();
    if (engine) engine->stop();
    if (place->loader.joinable()) place->loader.join();
    if (!engine && place->engine) place->engine->stop();  // made while we waited for its thread
    lock.lock();
    std::erase(places_, place);
    std::erase_if(known_names_, [&](const auto& entry) { return entry.second == place->target.id; });
    log_info("server", "model " + place->target.id + ": unloaded");
    changed_.notify_all();
}

// The idle, not pinned place that was used least recently; else marks the busy one used least recently, whose new
// requests then queue behind. Null when nothing can be freed now.
Fleet::PlacePtr Fleet::pick_victim() {
    PlacePtr best, busy;
    bool leaving = false;
    for (const PlacePtr& place : places_) {
        if (place->phase == Phase::leaving || place->wanted_away) leaving = true;
        if (place->phase == Phase::leaving || place->target.settings.pin) continue;
        if (idle(*place) && (place->phase != Phase::loading || place->engine)) {
            if (!best || place->last_used < best->last_used) best = place;
        } else if (!busy || place->last_used < busy->last_used) {
            busy = place;
        }
    }
    if (best) return best;
    if (busy && !leaving) busy->wanted_away = true;
    return nullptr;
}

Result<Fleet::Lease> Fleet::acquire(const std::string& name, bool inference, const std::function<bool()>& gone,
                                    std::chrono::milliseconds* retry_after) {
    auto until = Clock::now() + limits_.load_wait;
    std::unique_lock lock(mutex_);
    ModelTarget target;
    bool resolved = false;
    bool reloaded = false;
    PlacePtr waited_for;  // counts us as waiting, so that it is not evicted before we wake
    struct Uncount {
        PlacePtr& place;
        ~Uncount() {
            if (place) place->waiting--;
        }
    } uncount{waited_for};
    PlacePtr marked;  // that we asked to go away
    auto give_up_mark = [&] {
        if (marked) marked->wanted_away = false;
        marked.reset();
        changed_.notify_all();
    };

    for (;;) {
        if (stopping_ || closed_) {
            give_up_mark();
            return Error{ErrorCode::unavailable, "server", "a running server", "one that is stopping", ""};
        }
        PlacePtr place = resolved ? find(target.id) : find_by_name(name);
        if (!place && !resolved) {
            Resolve resolve = resolve_;
            lock.unlock();
            Result<ModelTarget> found = resolve(name);
            lock.lock();
            if (!found.ok()) {
                // no default model, but one is here that somebody chose
                PlacePtr other = name.empty() ? last_used_ready() : nullptr;
                if (!other) return found.error();
                target = other->target;
            } else {
                target = std::move(*found);
            }
            resolved = true;
            if (find(target.id)) known_names_[name] = target.id;
            if (name.empty() && !find(target.id))
                if (PlacePtr other = last_used_ready()) target = other->target;
            continue;
        }
        if (place != waited_for) {
            if (waited_for) waited_for->waiting--;
            waited_for = nullptr;
            // those who wait for a place to go must not keep it
            if (place && place->phase != Phase::leaving && !place->wanted_away && !place->stale) {
                waited_for = place;
                place->waiting++;
            }
        }

        if (place && place->stale && place->in_flight == 0 && place->phase != Phase::leaving && !limits_.fixed) {
            if (waited_for) waited_for->waiting--;
            waited_for = nullptr;
            remove(lock, place);
            resolved = false;
            continue;
        }
        // who waited before it was wanted away is still served, or two models could push each other out for ever
        if (place && (place == waited_for || limits_.fixed) && place->phase == Phase::running) {
            EngineStatus status = place->engine->status();
            if (status.state == EngineState::ready) {
                give_up_mark();
                return make_lease(place, inference);
            }
            if (status.state == EngineState::failed || status.state == EngineState::stopped) {
                place->phase = Phase::failed;
                place->failed_at = now_();
                place->failure = unavailable(place->target.id, "an engine that failed: " + status.last_failure);
            } else if (limits_.fixed || status.retry_after > kLongBackOff) {
                if (retry_after) *retry_after = std::max(status.retry_after, std::chrono::milliseconds(1000));
                return unavailable(place->target.id, status.last_failure.empty()
                                                         ? "one that is starting"
                                                         : "an engine that is starting again: " + status.last_failure);
            }
        }
        if (place && place->phase == Phase::failed) {
            bool fresh = now_() - place->failed_at < limits_.failure_memory;
            if (fresh || reloaded) {
                give_up_mark();
                if (retry_after) *retry_after = limits_.failure_memory;
                return place->failure;
            }
            if (place->in_flight == 0) {
                if (waited_for) waited_for->waiting--;
                waited_for = nullptr;
                reloaded = true;
                remove(lock, place);
                continue;
            }
        }
        if (place && place->phase == Phase::loading && limits_.fixed) {
            if (retry_after) *retry_after = std::chrono::milliseconds(1000);
            int done = place->engine ? static_cast<int>(place->engine->status().load_progress * 100) : 0;
            return unavailable(place->target.id, "one that is loading (" + std::to_string(done) + " % done)",
                               "try again, or watch /health");
        }
        if (!place) {
            if (places_.size() < limits_.max_models) {
                give_up_mark();
                start_loading(target);
                known_names_[name] = target.id;
                continue;
            }
            if (PlacePtr victim = pick_victim()) {
                if (victim == marked) marked.reset();
                remove(lock, victim);
                continue;
            }
            for (const PlacePtr& other : places_)
                if (!marked && other->wanted_away && other->phase != Phase::leaving) marked = other;
            bool all_pinned = std::all_of(places_.begin(), places_.end(), [](const PlacePtr& other) {
                return other->target.settings.pin && other->phase != Phase::leaving;
            });
            if (all_pinned)
                return Error{ErrorCode::conflict, "model '" + target.id + "'", "a free place among max_models",
                             "that all are held by pinned models", "raise max_models or unload one of them"};
        }
        changed_.wait_for(lock, kStep);
        if (gone && gone()) {
            give_up_mark();
            return Error{ErrorCode::cancelled, "request", "a client", "that it has left", ""};
        }
        if (Clock::now() >= until) {
            give_up_mark();
            if (retry_after) *retry_after = std::chrono::milliseconds(5000);
            return Error{ErrorCode::timeout, "model '" + target.id + "'",
                         "a loaded model within " + std::to_string(limits_.load_wait.count() / 1000) + " s",
                         place ? "one that still loads" : "no free place", "try again later"};
        }
    }
}

Result<Fleet::Lease> Fleet::acquire_loaded(const std::string& name, bool inference) {
    std::unique_lock lock(mutex_);
    if (stopping_) return Error{ErrorCode::unavailable, "server", "a running server", "one that is stopping", ""};
    auto ready = [](const PlacePtr& place) {
        return place && place->phase == Phase::running && place->engine->status().state == EngineState::ready;
    };
    PlacePtr place = find_by_name(name);
    if (!place && !limits_.fixed) {
        Resolve resolve = resolve_;
        lock.unlock();
        Result<ModelTarget> found = resolve(name);
        lock.lock();
        if (!found.ok() && !name.empty()) return found.error();
        if (found.ok() && (place = find(found->id))) known_names_[name] = found->id;
    }
    if (!place && name.empty()) place = last_used_ready();
    if (ready(place)) return make_lease(place, inference);
    if (place && place->phase == Phase::failed) return place->failure;
    return unavailable(place          ? place->target.id
                       : name.empty() ? "default"
                                      : printable(name),
                       place ? "one that is loading" : "one that is not loaded");
}

Result<void> Fleet::load(const std::string& name) {
    Result<ModelTarget> target = resolve_(name);
    if (!target.ok()) return target.error();
    std::unique_lock lock(mutex_);
    for (;;) {
        if (stopping_ || closed_)
            return Error{ErrorCode::unavailable, "server", "a running server", "one that is stopping", ""};
        PlacePtr place = find(target->id);
        if (place && place->phase == Phase::failed && place->in_flight == 0) {
            remove(lock, place);
            continue;
        }
        if (place) return {};
        if (places_.size() < limits_.max_models) {
            start_loading(*target);
            known_names_[name] = target->id;
            return {};
        }
        bool any_idle = std::any_of(places_.begin(), places_.end(), [](const PlacePtr& other) {
            return idle(*other) && other->phase != Phase::leaving && !other->target.settings.pin;
        });
        PlacePtr victim = any_idle ? pick_victim() : nullptr;
        if (!victim)
            return Error{ErrorCode::conflict, "model '" + target->id + "'", "a free place among max_models",
                         "that all are in use or pinned", "try again, or unload one of them"};
        remove(lock, victim);
    }
}

Result<void> Fleet::unload(const std::string& name, std::chrono::milliseconds limit) {
    if (fixed())
        return Error{ErrorCode::conflict, "model '" + printable(name) + "'", "a model loaded on demand",
                     "the one this server was started with", "stop the server instead"};
    std::string id = name;
    {
        std::lock_guard lock(mutex_);
        if (PlacePtr place = find_by_name(name)) id = place->target.id;
    }
    std::unique_lock lock(mutex_);
    PlacePtr place = find(id);
    if (!place) {
        Resolve resolve = resolve_;
        lock.unlock();
        Result<ModelTarget> target = resolve(name);
        lock.lock();
        if (target.ok()) place = find(target->id);
        if (!place)
            return Error{ErrorCode::not_found, "model '" + printable(name) + "'", "a loaded model", "none of that name",
                         "GET /onebit/ps lists the loaded ones"};
    }
    place->wanted_away = true;
    auto until = Clock::now() + limit;
    while (place->in_flight > 0 && place->phase != Phase::leaving) {
        if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
            place->wanted_away = false;
            return Error{ErrorCode::timeout, "model '" + place->target.id + "'", "its requests to end",
                         std::to_string(place->in_flight) + " still running", "try again later"};
        }
    }
    if (place->phase == Phase::leaving) {
        changed_.wait(lock, [&] { return std::find(places_.begin(), places_.end(), place) == places_.end(); });
        return {};
    }
    remove(lock, place);
    return {};
}

}  // namespace onebit
