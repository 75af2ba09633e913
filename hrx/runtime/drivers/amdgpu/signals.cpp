#include "hrx/runtime/drivers/amdgpu/signals.h"

#include <algorithm>
#include <chrono>

#include "hrx/runtime/drivers/amdgpu/fault.h"

namespace onebit::hrx::runtime::amdgpu {

SignalPool::~SignalPool() {
    for (const hsa_signal_t signal : free_) api().hsa_signal_destroy(signal);
}

Result<hsa_signal_t> SignalPool::take() {
    hsa_signal_t signal{};
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            signal = free_.back();
            free_.pop_back();
        }
    }
    if (signal.handle != 0) {
        api().hsa_signal_store_relaxed(signal, 1);
    } else {
        ONEBIT_HRX_HSA(hsa_signal_create, 1, 0, nullptr, &signal);
    }
    return signal;
}

void SignalPool::give_back(hsa_signal_t signal) {
    const std::lock_guard lock(mutex_);
    free_.push_back(signal);
}

void QueueState::fail(hsa_status_t status) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error("AQL queue", status);
    error_->code = ErrorCode::cancelled;
    error_->remedy = "the queue has stopped; see dmesg";
    failed_.store(true, std::memory_order_release);
}

std::optional<Error> QueueState::failure() const {
    if (failed_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(mutex_);
        return error_;
    }
    if (const auto text = fault()) {
        return Error{ErrorCode::cancelled, "AMD GPU", "no fault", *text, "this process can use the device no more"};
    }
    return std::nullopt;
}

SignalCompletion::SignalCompletion(std::shared_ptr<SignalPool> pool, std::shared_ptr<QueueState> state,
                                   hsa_signal_t signal, std::vector<std::shared_ptr<Completion>> waits)
    : pool_(std::move(pool)), state_(std::move(state)), signal_(signal), waits_(std::move(waits)) {}

SignalCompletion::~SignalCompletion() {
    // of a lost queue, packets may still name the signal
    if (finished_.load(std::memory_order_acquire)) pool_->give_back(signal_);
}

bool SignalCompletion::finished() {
    if (finished_.load(std::memory_order_acquire)) return true;
    if (api().hsa_signal_load_scacquire(signal_) >= 1) return false;
    std::vector<std::shared_ptr<Completion>> done;
    const std::lock_guard lock(mutex_);
    finished_.store(true, std::memory_order_release);
    done.swap(waits_);
    return true;
}

Result<bool> SignalCompletion::wait(uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    // a failed queue is looked for this often
    constexpr uint64_t slice = 10'000'000;
    static const uint64_t ticks_per_second = [] {
        uint64_t rate = 0;
        api().hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &rate);
        return rate == 0 ? uint64_t{1'000'000'000} : rate;
    }();
    const auto begin = Clock::now();
    for (;;) {
        if (finished()) return true;
        if (const auto failure = state_->failure()) return *failure;
        const auto passed = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
        if (passed >= nanoseconds) return false;
        const uint64_t part = std::min(slice, nanoseconds - passed);
        const auto ticks =
            static_cast<uint64_t>(static_cast<double>(part) * 1e-9 * static_cast<double>(ticks_per_second));
        api().hsa_signal_wait_scacquire(signal_, HSA_SIGNAL_CONDITION_LT, 1, std::max<uint64_t>(ticks, 1),
                                        HSA_WAIT_STATE_BLOCKED);
    }
}

}  // namespace onebit::hrx::runtime::amdgpu
