#include "server/supervisor/fatal_requests.h"

#include <algorithm>

namespace onebit {
namespace {

constexpr std::chrono::milliseconds kLook{50};  // between questions whether to give up

}  // namespace

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

FatalRequests::Turn::~Turn() {
    if (owner_ == nullptr) return;
    const std::lock_guard lock(owner_->mutex_);
    owner_->turn_taken_ = false;
    owner_->turn_over_.notify_all();
}

std::optional<FatalRequests::Turn> FatalRequests::wait_for_turn(const Key& key, std::chrono::milliseconds limit,
                                                                const std::function<bool()>& give_up) {
    const auto until = Clock::now() + limit;
    std::unique_lock lock(mutex_);
    for (;;) {
        forget_old();
        const bool runs_alone = std::any_of(suspects_.begin(), suspects_.end(),
                                            [&](const Suspect& one) { return one.key == key && !one.refused; });
        Turn turn;
        if (!runs_alone) return turn;
        if (!turn_taken_) {
            turn_taken_ = true;
            turn.owner_ = this;
            return turn;
        }
        if (Clock::now() >= until || give_up()) return {};
        turn_over_.wait_for(lock, kLook);
    }
}

FatalRequests::Flight::Flight(FatalRequests& owner, const Key& key, std::string engine, Turn turn)
    : owner_(owner), key_(key), engine_(std::move(engine)), turn_(std::move(turn)) {
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
