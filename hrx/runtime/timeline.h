// Semaphores, queues and the bookkeeping of what is in flight on one device. No thread of its own: whoever submits,
// queries or waits moves the state on. One lock a device; it is never held while waiting for the device.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/ref.h"

namespace onebit::hrx::runtime {

class Buffer;
class Device;
class Program;
class Queue;
class Semaphore;

struct SemaphoreValue {
    Ref<Semaphore> semaphore;
    uint64_t value = 0;
};

struct Submission {
    Ref<Program> program;  // may be empty
    std::vector<SemaphoreValue> waits, signals;
    std::vector<Ref<Buffer>> replaced;       // bound until a patch before this submission
    std::vector<std::byte> arguments;        // of a submission that had to be held back; else empty
    uint64_t held_id = 0;                    // not 0: held back, a number that its program gave
    std::shared_ptr<Completion> after;       // of its program on another queue, which the device waits for
    std::shared_ptr<Completion> completion;  // once it is on the device
};

class Timeline {
public:
    // What must be destroyed only after the lock is let go, since destruction may wait for the device or take the lock.
    using Retired = std::vector<Submission>;

    void add(Queue& queue);
    void remove(Queue& queue);

    std::mutex mutex;
    std::condition_variable changed;  // a submission was launched, a value signalled, something failed

    // With the mutex held: takes note of finished work, then launches what has become possible.
    void advance(Retired& retired);

private:
    std::vector<Queue*> queues_;
};

class Semaphore final : public Counted {
public:
    Semaphore(Device& device, uint64_t value);
    ~Semaphore() override;

    Device& device() const { return *device_; }
    Result<uint64_t> query();
    Result<void> signal(uint64_t value);
    Result<void> wait(uint64_t value, uint64_t timeout);

private:
    friend class Queue;
    friend class Timeline;

    // With the timeline's mutex held.
    void reach(uint64_t value);
    std::shared_ptr<Completion> completion_for(uint64_t value) const;
    bool can_signal(uint64_t value) const { return value > reached_ && !promised_.contains(value); }

    const Ref<Device> device_;
    uint64_t reached_;
    std::map<uint64_t, std::shared_ptr<Completion>> promised_;  // by submissions; empty while one is held back
    std::optional<Error> failure_;
};

class Queue final : public Counted {
public:
    static Result<Ref<Queue>> create(Device& device);
    Queue(Device& device, std::unique_ptr<Channel> channel);
    ~Queue() override;

    Device& device() const { return *device_; }
    Result<void> submit(Submission submission);
    Result<void> wait_idle(uint64_t timeout);

private:
    friend class Timeline;

    // With the timeline's mutex held.
    Result<void> check(const Submission& submission) const;
    bool ready(const Submission& submission) const;
    Result<void> launch(Submission& submission);
    void hold_back(Submission submission);
    bool launch_held(Timeline::Retired& retired);
    void collect(Timeline::Retired& retired);
    // Loses the queue when what is on the device waits for something that is lost. Returns whether it did.
    bool lose_doomed(Timeline::Retired& retired);
    void lose(const Error& error, Timeline::Retired& retired);

    const Ref<Device> device_;
    std::unique_ptr<Channel> channel_;
    std::deque<Submission> in_flight_, held_;
    uint64_t submitted_ = 0, finished_ = 0;  // counts of submissions
    std::optional<Error> failure_;
};

}  // namespace onebit::hrx::runtime
