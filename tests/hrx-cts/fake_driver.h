// A driver whose faults a test causes on purpose: no real one fails when asked. It runs nothing; memory is the host's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hrx/runtime/drivers.h"

namespace onebit::hrx::runtime {

// What the test wants, and what it sees. One for the process: the driver is added once.
struct FakeControl {
    std::atomic<bool> fail_allocate{false}, fail_record{false}, fail_submit{false}, fail_channel{false};
    std::atomic<int> live_memory{0}, live_recordings{0}, live_images{0}, live_devices{0};
    std::atomic<int> submits{0};
    std::atomic<bool> finish_at_once{true};
    std::mutex mutex;
    std::vector<std::weak_ptr<class FakeCompletion>> open;  // submissions that have not finished

    void finish_all();
    void lose_all();
    // Marks what is open now, to be lost by lose_marked().
    void mark_open();
    void lose_marked();

private:
    std::vector<std::weak_ptr<class FakeCompletion>> marked_;
};
FakeControl& fake();

class FakeCompletion final : public Completion {
public:
    Result<bool> wait(uint64_t nanoseconds) override;
    std::atomic<bool> finished{false}, lost{false};
};

// Adds the driver "fake" to the process.
void add_fake_driver();

}  // namespace onebit::hrx::runtime
