// The fleet's upkeep: keep-alive, new settings, views and the end.
#include <algorithm>

#include "server/supervisor/fleet.h"

namespace onebit {
namespace {

bool same_settings(const ModelConfig& a, const ModelConfig& b) {
    return a.source == b.source && a.devices == b.devices && a.prefill_device == b.prefill_device &&
           a.prefill_min_tokens == b.prefill_min_tokens && a.open_devices == b.open_devices && a.strict == b.strict &&
           a.excluded == b.excluded && a.context == b.context && a.parallel == b.parallel && a.arguments == b.arguments;
}

}  // namespace

void Fleet::tick() {
    std::unique_lock lock(mutex_);
    for (;;) {
        PlacePtr due;
        for (const PlacePtr& place : places_) {
            if (stopping_ || limits_.fixed || !idle(*place)) continue;
            if (place->phase != Phase::running && !(place->phase == Phase::failed && place->engine)) continue;
            KeepAlive keep = place->target.keep_alive();
            bool over = keep.count() >= 0 && now_() - place->last_used >= keep;
            // a failed engine has no process any more; its place stays to tell why until it is asked for again
            if (place->phase == Phase::failed) over = false;
            if (over || place->stale) due = place;
        }
        if (!due) return;
        remove(lock, due);
    }
}

void Fleet::run_reaper() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        changed_.wait_for(lock, std::chrono::milliseconds(500));
        lock.unlock();
        tick();
        lock.lock();
    }
}

void Fleet::reconfigure(FleetLimits limits, const Resolve& resolve) {
    std::vector<std::pair<PlacePtr, std::string>> present;
    {
        std::lock_guard lock(mutex_);
        limits.fixed = limits_.fixed;
        limits.max_models = std::max(limits.max_models, 1u);
        limits_ = limits;
        resolve_ = resolve;
        known_names_.clear();
        for (const PlacePtr& place : places_) present.emplace_back(place, place->target.id);
    }
    if (limits.fixed) return;
    for (auto& [place, id] : present) {
        Result<ModelTarget> target = resolve(id);
        std::lock_guard lock(mutex_);
        if (!target.ok() || !same_settings(target->settings, place->target.settings)) {
            place->stale = true;
        } else {
            place->target.settings.keep_alive = target->settings.keep_alive;
            place->target.settings.pin = target->settings.pin;
            place->target.aliases = target->aliases;
        }
    }
    changed_.notify_all();
}

std::vector<EngineView> Fleet::engines() const {
    std::vector<EngineView> views;
    std::lock_guard lock(mutex_);
    for (const PlacePtr& place : places_) {
        EngineView view;
        view.id = place->target.id;
        view.aliases = place->target.aliases;
        view.entry = place->target.entry;
        view.settings = place->target.settings;
        if (place->engine) {
            view.status = place->engine->status();
            view.socket = place->engine->socket();
            view.generation = place->engine->generation();
            view.memory = place->engine->memory();
            view.tandem = place->engine->tandem();
        } else {
            view.status.state = place->phase == Phase::failed ? EngineState::failed : EngineState::starting;
        }
        // ready is what requests find: the loader's thread may be about to learn it
        if (place->phase == Phase::loading && view.status.state == EngineState::ready)
            view.status.state = EngineState::starting;
        if (place->phase == Phase::leaving) view.status.state = EngineState::stopping;
        view.failed = place->phase == Phase::failed;
        if (view.failed) view.failure = place->failure;
        view.pinned = place->target.settings.pin;
        view.requests = place->in_flight;
        view.loads = loads_.at(place->target.id);
        view.load_seconds = place->load_seconds;
        KeepAlive keep = place->target.keep_alive();
        if (!limits_.fixed && keep.count() >= 0 && idle(*place) && place->phase == Phase::running)
            view.keep_alive_left =
                std::max(std::chrono::milliseconds(0),
                         std::chrono::duration_cast<std::chrono::milliseconds>(place->last_used + keep - now_()));
        views.push_back(std::move(view));
    }
    return views;
}

uint32_t Fleet::requests_in_flight() const {
    std::lock_guard lock(mutex_);
    uint32_t sum = 0;
    for (const PlacePtr& place : places_) sum += place->in_flight;
    return sum;
}

bool Fleet::fixed() const {
    std::lock_guard lock(mutex_);
    return limits_.fixed;
}

void Fleet::stop_accepting() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

void Fleet::limit_stop(Clock::time_point kill_at) {
    const std::lock_guard lock(mutex_);
    kill_at_ = std::min(kill_at_, kill_at);
    for (const PlacePtr& place : places_)
        if (place->engine) place->engine->limit_stop(kill_at_);
}

void Fleet::stop(Clock::time_point kill_at) {
    limit_stop(kill_at);
    std::vector<PlacePtr> all;
    {
        std::lock_guard lock(mutex_);
        if (stopping_ && !reaper_.joinable()) return;
        stopping_ = true;
        changed_.notify_all();
        all.assign(places_.begin(), places_.end());
    }
    if (reaper_.joinable()) reaper_.join();
    std::vector<std::thread> stoppers;
    stoppers.reserve(all.size());
    for (const PlacePtr& place : all)
        stoppers.emplace_back([this, place] {
            std::unique_lock lock(mutex_);
            if (place->phase == Phase::leaving) {
                changed_.wait(lock, [&] { return std::find(places_.begin(), places_.end(), place) == places_.end(); });
                return;
            }
            remove(lock, place);
        });
    for (std::thread& stopper : stoppers) stopper.join();
}

}  // namespace onebit
