#include "hrx/runtime/drivers/cuda/events.h"

#include <chrono>
#include <thread>

namespace onebit::hrx::runtime::cuda {

Result<CUevent> EventPool::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            const CUevent event = free_.back();
            free_.pop_back();
            return event;
        }
    }
    CUevent event = nullptr;
    ONEBIT_HRX_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    return event;
}

void EventPool::give_back(CUevent event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
}

void EventPool::clear() {
    const std::lock_guard lock(mutex_);
    for (CUevent event : free_) api().cuEventDestroy(event);
    free_.clear();
}

Result<bool> EventCompletion::wait(uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    // short work is over before a sleeping thread would be woken
    constexpr auto spin = std::chrono::microseconds(200), pause = std::chrono::microseconds(50);
    if (finished_.load(std::memory_order_acquire)) return true;
    const ContextScope scope(pool_->context());
    const auto begin = Clock::now();
    for (;;) {
        const CUresult result = api().cuEventQuery(event_);
        if (result == CUDA_SUCCESS) {
            finished_.store(true, std::memory_order_release);
            return true;
        }
        if (result != CUDA_ERROR_NOT_READY) {
            Error lost = error("cuEventQuery", result);
            lost.code = ErrorCode::cancelled;
            return lost;
        }
        const auto passed = Clock::now() - begin;
        if (static_cast<uint64_t>(std::chrono::nanoseconds(passed).count()) >= nanoseconds) return false;
        if (passed > spin) std::this_thread::sleep_for(pause);
    }
}

}  // namespace onebit::hrx::runtime::cuda
