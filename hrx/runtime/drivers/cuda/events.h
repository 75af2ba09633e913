// Makes the device's context current, and events that are used again and again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/drivers/cuda/libcuda.h"

namespace onebit::hrx::runtime::cuda {

// The context is this thread's current one while the scope lives.
class ContextScope {
public:
    explicit ContextScope(CUcontext context) { api().cuCtxPushCurrent(context); }
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;
    ~ContextScope() {
        CUcontext previous = nullptr;
        api().cuCtxPopCurrent(&previous);
    }
};

// Safe from any thread. The caller of take and of the destructor has made the context current.
class EventPool {
public:
    explicit EventPool(CUcontext context) : context_(context) {}
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;
    // Destroys all events: the device's last act.
    void clear();

    CUcontext context() const { return context_; }
    Result<CUevent> take();
    void give_back(CUevent event);

private:
    const CUcontext context_;
    std::mutex mutex_;
    std::vector<CUevent> free_;
};

// Finished when the event, recorded after a submission, has been reached.
class EventCompletion final : public Completion {
public:
    EventCompletion(std::shared_ptr<EventPool> pool, CUevent event) : pool_(std::move(pool)), event_(event) {}
    ~EventCompletion() override { pool_->give_back(event_); }
    CUevent event() const { return event_; }
    Result<bool> wait(uint64_t nanoseconds) override;

private:
    const std::shared_ptr<EventPool> pool_;
    const CUevent event_;
    std::atomic<bool> finished_{false};
};

}  // namespace onebit::hrx::runtime::cuda
