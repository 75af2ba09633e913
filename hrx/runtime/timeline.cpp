#include "hrx/runtime/timeline.h"

#include <algorithm>
#include <chrono>

#include "hrx/runtime/objects.h"
#include "hrx/runtime/program.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// A waiting thread looks this often whether something else than the work it watches has made it ready.
constexpr uint64_t slice = 5'000'000;

// Counts down; a deadline too far for the clock is none.
class Deadline {
public:
    explicit Deadline(uint64_t nanoseconds) {
        constexpr auto most = std::chrono::nanoseconds(std::chrono::hours(24 * 365));
        if (nanoseconds < static_cast<uint64_t>(most.count()))
            end_ = Clock::now() + std::chrono::nanoseconds(nanoseconds);
    }
    uint64_t left() const {
        if (!end_) return UINT64_MAX;
        return static_cast<uint64_t>(std::max<int64_t>(0, (*end_ - Clock::now()) / std::chrono::nanoseconds(1)));
    }

private:
    std::optional<Clock::time_point> end_;
};

Error timed_out(const char* what, const std::string& expected, const std::string& found) {
    return Error{ErrorCode::timeout, what, expected, found, ""};
}

}  // namespace

// ---- timeline ----

void Timeline::add(Queue& queue) {
    const std::lock_guard lock(mutex);
    queues_.push_back(&queue);
}

void Timeline::remove(Queue& queue) {
    const std::lock_guard lock(mutex);
    std::erase(queues_, &queue);
}

void Timeline::advance(Retired& retired) {
    for (Queue* queue : queues_) queue->collect(retired);
    // what one queue launches may be what another waits for
    for (bool any = true; any;) {
        any = false;
        for (Queue* queue : queues_) any |= queue->lose_doomed(retired);
        for (Queue* queue : queues_) any |= queue->launch_held(retired);
    }
}

// ---- semaphore ----

Semaphore::Semaphore(Device& device, uint64_t value) : device_(Ref<Device>::share(&device)), reached_(value) {}
Semaphore::~Semaphore() = default;

void Semaphore::reach(uint64_t value) {
    promised_.erase(value);
    reached_ = std::max(reached_, value);
}

std::shared_ptr<Completion> Semaphore::completion_for(uint64_t value) const {
    for (auto promise = promised_.lower_bound(value); promise != promised_.end(); ++promise) {
        if (promise->second != nullptr) return promise->second;
    }
    return nullptr;
}

Result<uint64_t> Semaphore::query() {
    Timeline::Retired retired;
    const std::lock_guard lock(device_->timeline().mutex);
    device_->timeline().advance(retired);
    if (failure_) return *failure_;
    return reached_;
}

Result<void> Semaphore::signal(uint64_t value) {
    Timeline::Retired retired;
    const std::lock_guard lock(device_->timeline().mutex);
    device_->timeline().advance(retired);
    if (failure_) return *failure_;
    if (value <= reached_) {
        return invalid_argument("hrx_semaphore_signal", "a value above " + number(reached_), number(value));
    }
    if (!promised_.empty() && value >= promised_.begin()->first) {
        return invalid_argument("hrx_semaphore_signal",
                                "a value below " + number(promised_.begin()->first) + ", which submitted work signals",
                                number(value));
    }
    reach(value);
    device_->timeline().advance(retired);
    device_->timeline().changed.notify_all();
    return {};
}

Result<void> Semaphore::wait(uint64_t value, uint64_t timeout) {
    Timeline& timeline = device_->timeline();
    const Deadline deadline(timeout);
    for (;;) {
        Timeline::Retired retired;
        std::unique_lock lock(timeline.mutex);
        timeline.advance(retired);
        if (reached_ >= value) return {};
        if (failure_) return *failure_;
        const uint64_t left = deadline.left();
        if (left == 0) {
            return timed_out("hrx_semaphore_wait", "value " + number(value), number(reached_) + " at the time-out");
        }
        if (const auto completion = completion_for(value); completion != nullptr) {
            lock.unlock();
            // its error reaches the semaphore through advance
            static_cast<void>(completion->wait(std::min(left, slice)));
        } else if (left == UINT64_MAX) {
            timeline.changed.wait(lock);
        } else {
            timeline.changed.wait_for(lock, std::chrono::nanoseconds(left));
        }
    }
}

// ---- queue ----

Result<Ref<Queue>> Queue::create(Device& device) {
    auto channel = device.driver().create_channel();
    if (!channel.ok()) return std::move(channel).error();
    return Ref<Queue>::adopt(new Queue(device, std::move(*channel)));
}

Queue::Queue(Device& device, std::unique_ptr<Channel> channel)
    : device_(Ref<Device>::share(&device)), channel_(std::move(channel)) {
    device_->timeline().add(*this);
}

Queue::~Queue() {
    Timeline& timeline = device_->timeline();
    for (;;) {
        Timeline::Retired retired;
        std::unique_lock lock(timeline.mutex);
        timeline.advance(retired);
        if (!in_flight_.empty()) {
            const auto completion = in_flight_.back().completion;
            lock.unlock();
            static_cast<void>(completion->wait(slice));
            continue;
        }
        if (!held_.empty()) {
            lose(Error{ErrorCode::cancelled, "work held back for a semaphore", "a signal before its queue's release",
                       "none", ""},
                 retired);
            timeline.changed.notify_all();
        }
        break;
    }
    timeline.remove(*this);
    channel_.reset();
}

Result<void> Queue::check(const Submission& submission) const {
    if (failure_) return *failure_;
    for (const SemaphoreValue& signal : submission.signals) {
        if (signal.semaphore->failure_) return *signal.semaphore->failure_;
        if (!signal.semaphore->can_signal(signal.value)) {
            return invalid_argument(
                "value to signal",
                "above the reached " + number(signal.semaphore->reached_) + " and promised by no other submission",
                number(signal.value));
        }
        const auto same = std::ranges::count_if(submission.signals, [&](const SemaphoreValue& other) {
            return other.semaphore.get() == signal.semaphore.get() && other.value == signal.value;
        });
        if (same > 1) return invalid_argument("signals", "each value once", number(signal.value) + " twice");
    }
    for (const SemaphoreValue& wait : submission.waits) {
        if (wait.semaphore->failure_) return *wait.semaphore->failure_;
    }
    return {};
}

bool Queue::ready(const Submission& submission) const {
    if (submission.program && !submission.program->may_launch(submission.held_id)) return false;
    return std::ranges::all_of(submission.waits, [](const SemaphoreValue& wait) {
        return wait.semaphore->reached_ >= wait.value || wait.semaphore->completion_for(wait.value) != nullptr;
    });
}

Result<void> Queue::launch(Submission& submission) {
    std::vector<std::shared_ptr<Completion>> waits;
    for (const SemaphoreValue& wait : submission.waits) {
        if (wait.semaphore->failure_) return *wait.semaphore->failure_;
        if (wait.semaphore->reached_ < wait.value) waits.push_back(wait.semaphore->completion_for(wait.value));
    }
    Result<std::shared_ptr<Completion>> launched =
        submission.program ? submission.program->launch(*channel_, submission, std::move(waits))
                           : channel_->submit(nullptr, {}, waits);
    if (!launched.ok()) return std::move(launched).error();
    submission.completion = *launched;
    for (const SemaphoreValue& signal : submission.signals) {
        signal.semaphore->promised_[signal.value] = submission.completion;
    }
    return {};
}

void Queue::hold_back(Submission submission) {
    for (const SemaphoreValue& signal : submission.signals) signal.semaphore->promised_[signal.value] = nullptr;
    if (submission.program) submission.program->hold_back(submission);
    held_.push_back(std::move(submission));
}

Result<void> Queue::submit(Submission submission) {
    Timeline& timeline = device_->timeline();
    Timeline::Retired retired;
    const std::lock_guard lock(timeline.mutex);
    timeline.advance(retired);
    ONEBIT_RETURN_IF_ERROR(check(submission));
    if (!held_.empty() || !ready(submission)) {
        hold_back(std::move(submission));
        submitted_++;
        return {};
    }
    ONEBIT_RETURN_IF_ERROR(launch(submission));
    in_flight_.push_back(std::move(submission));
    submitted_++;
    timeline.advance(retired);
    timeline.changed.notify_all();
    return {};
}

bool Queue::launch_held(Timeline::Retired& retired) {
    bool any = false;
    while (!held_.empty()) {
        Submission& next = held_.front();
        const auto failed = std::ranges::find_if(
            next.waits, [](const SemaphoreValue& wait) { return wait.semaphore->failure_.has_value(); });
        if (failed != next.waits.end()) {
            lose(Error(*failed->semaphore->failure_), retired);
            device_->timeline().changed.notify_all();
            return true;
        }
        if (!ready(next)) break;
        const Result<void> launched = launch(next);
        if (!launched.ok()) {
            lose(launched.error(), retired);
            device_->timeline().changed.notify_all();
            return true;
        }
        if (next.program) next.program->let_go(next, true);
        in_flight_.push_back(std::move(next));
        held_.pop_front();
        device_->timeline().changed.notify_all();
        any = true;
    }
    return any;
}

void Queue::collect(Timeline::Retired& retired) {
    while (!in_flight_.empty()) {
        Submission& oldest = in_flight_.front();
        const Result<bool> finished = oldest.completion->wait(0);
        if (!finished.ok()) {
            lose(finished.error(), retired);
            device_->timeline().changed.notify_all();
            return;
        }
        if (!*finished) return;
        for (const SemaphoreValue& signal : oldest.signals) signal.semaphore->reach(signal.value);
        retired.push_back(std::move(oldest));
        in_flight_.pop_front();
        finished_++;
    }
}

bool Queue::lose_doomed(Timeline::Retired& retired) {
    for (const Submission& submission : in_flight_) {
        std::optional<Error> why;
        for (const SemaphoreValue& wait : submission.waits) {
            if (wait.semaphore->reached_ < wait.value && wait.semaphore->failure_) why = wait.semaphore->failure_;
        }
        if (submission.after != nullptr && submission.after->abandoned) why = Program::lost_before();
        if (!why) continue;
        lose(*why, retired);
        device_->timeline().changed.notify_all();
        return true;
    }
    return false;
}

void Queue::lose(const Error& error, Timeline::Retired& retired) {
    if (!failure_) failure_ = error;
    for (auto* list : {&in_flight_, &held_}) {
        for (Submission& submission : *list) {
            if (submission.completion != nullptr) submission.completion->abandoned = true;
            for (const SemaphoreValue& signal : submission.signals) {
                signal.semaphore->promised_.erase(signal.value);
                if (!signal.semaphore->failure_) signal.semaphore->failure_ = error;
            }
            if (list == &held_ && submission.program) submission.program->let_go(submission, false);
            finished_++;
            retired.push_back(std::move(submission));
        }
        list->clear();
    }
}

Result<void> Queue::wait_idle(uint64_t timeout) {
    Timeline& timeline = device_->timeline();
    const Deadline deadline(timeout);
    std::optional<uint64_t> target;
    for (;;) {
        Timeline::Retired retired;
        std::unique_lock lock(timeline.mutex);
        timeline.advance(retired);
        if (!target) target = submitted_;
        if (failure_) return *failure_;
        if (finished_ >= *target) return {};
        const uint64_t left = deadline.left();
        if (left == 0) {
            return timed_out("hrx_queue_wait_idle", "nothing in flight",
                             number(*target - finished_) + " submissions at the time-out");
        }
        if (!in_flight_.empty()) {
            // the submission that completes the target, or the last that is on the device
            const size_t at = std::min<uint64_t>(*target - finished_, in_flight_.size()) - 1;
            const auto completion = in_flight_[at].completion;
            lock.unlock();
            static_cast<void>(completion->wait(std::min(left, slice)));
        } else if (left == UINT64_MAX) {
            timeline.changed.wait(lock);
        } else {
            timeline.changed.wait_for(lock, std::chrono::nanoseconds(left));
        }
    }
}

}  // namespace onebit::hrx::runtime
