// HSA signals that are used again and again, and completions that are such a signal.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/drivers/amdgpu/libhsa.h"

namespace onebit::hrx::runtime::amdgpu {

// Safe from any thread.
class SignalPool {
public:
    SignalPool() = default;
    SignalPool(const SignalPool&) = delete;
    SignalPool& operator=(const SignalPool&) = delete;
    ~SignalPool();
    // Its value is 1.
    Result<hsa_signal_t> take();
    void give_back(hsa_signal_t signal);

private:
    std::mutex mutex_;
    std::vector<hsa_signal_t> free_;
};

// What the runtime tells of a queue on a thread of its own.
class QueueState {
public:
    void fail(hsa_status_t status);
    // The queue's error, or a memory fault of the process; nothing while all is well.
    std::optional<Error> failure() const;

private:
    mutable std::mutex mutex_;
    std::atomic<bool> failed_{false};
    std::optional<Error> error_;
};

// Finished when the packet processor has taken the signal from 1 to 0.
class SignalCompletion final : public Completion {
public:
    // waits: what the submission waits for on the device. Their signals must not be used again before it has finished.
    SignalCompletion(std::shared_ptr<SignalPool> pool, std::shared_ptr<QueueState> state, hsa_signal_t signal,
                     std::vector<std::shared_ptr<Completion>> waits);
    ~SignalCompletion() override;
    hsa_signal_t signal() const { return signal_; }
    Result<bool> wait(uint64_t nanoseconds) override;

private:
    bool finished();

    const std::shared_ptr<SignalPool> pool_;
    const std::shared_ptr<QueueState> state_;
    const hsa_signal_t signal_;
    std::atomic<bool> finished_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<Completion>> waits_;
};

}  // namespace onebit::hrx::runtime::amdgpu
