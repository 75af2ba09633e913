#include "server/supervisor/fatal_requests.h"

#include <algorithm>

namespace onebit {

FatalRequests::Key FatalRequests::key_of(std::string_view path, std::string_view body) {
    const std::hash<std::string_view> hash;
    return {hash(path), hash(body), body.size()};
}

// Caller holds the lock.
void FatalRequests::forget_old() {
    const auto now = now_();
    std::erase_if(suspects_, [&](const Suspect& one) { return now - one.at >= kKept; });
}

// Caller holds the lock.
FatalRequests::Suspect& FatalRequests::suspect(const Key& key) {
    const auto found =
        std::find_if(suspects_.begin(), suspects_.end(), [&](const Suspect& one) { return one.key == key; });
    if (found != suspects_.end()) {
        suspects_.splice(suspects_.begin(), suspects_, found);
    } else {
        suspects_.emplace_front().key = key;
        if (suspects_.size() > kMost) suspects_.pop_back();
    }
    return suspects_.front();
}

std::optional<unsigned> FatalRequests::refused(const Key& key) {
    const std::lock_guard lock(mutex_);
    forget_old();
    for (const Suspect& one : suspects_)
        if (one.key == key && one.refused) return one.ended;
    return {};
}

FatalRequests::Flight::Flight(FatalRequests& owner, const Key& key, std::string engine)
    : owner_(owner), key_(key), engine_(std::move(engine)) {
    const std::lock_guard lock(owner_.mutex_);
    owner_.engines_[engine_].flights[key_]++;
}

FatalRequests::Flight::~Flight() {
    const std::lock_guard lock(owner_.mutex_);
    const auto engine = owner_.engines_.find(engine_);
    if (const auto count = engine->second.flights.find(key_); --count->second == 0) engine->second.flights.erase(count);
    if (engine->second.flights.empty()) owner_.engines_.erase(engine);
}

bool FatalRequests::Flight::engine_ended(bool by_others) {
    const std::lock_guard lock(owner_.mutex_);
    owner_.forget_old();
    Engine& engine = owner_.engines_.at(engine_);
    // the first one to notice sees all that were there
    if (!engine.alone) engine.alone = engine.flights.size() == 1;
    Suspect& suspect = owner_.suspect(key_);
    suspect.at = owner_.now_();
    if (suspect.last_engine != engine_) suspect.ended++;
    suspect.last_engine = engine_;
    suspect.refused = suspect.refused || suspect.ended >= 2 || (*engine.alone && !by_others);
    return suspect.refused;
}

void FatalRequests::Flight::answered() {
    const std::lock_guard lock(owner_.mutex_);
    std::erase_if(owner_.suspects_, [&](const Suspect& one) { return one.key == key_ && !one.refused; });
}

}  // namespace onebit
