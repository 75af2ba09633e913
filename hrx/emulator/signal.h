// HSA signals: 64-byte objects in AMD's public layout (amd_signal_t), so that a program that reads the value or the
// timestamps through a pointer finds them. Waits sleep until any signal changes.
#pragma once

#include <atomic>
#include <chrono>

#include "hrx/emulator/types.h"
#include "hrx/hsa/hsa_api.h"

namespace onebit::emulator {

struct alignas(64) Signal {
    i64 kind = 1;  // 1 user, -1 doorbell
    std::atomic<i64> value{0};
    u64 event_mailbox = 0;
    u32 event_id = 0;
    u32 reserved1 = 0;
    std::atomic<u64> start{0};  // timestamps of the dispatch that completed it
    std::atomic<u64> end{0};
    void* queue = nullptr;
    u32 magic = kMagic;
    u32 reserved2 = 0;

    static constexpr u32 kMagic = 0x5349474e;
};
static_assert(sizeof(Signal) == 64);

// Null when the handle is no signal.
Signal* signal_of(hsa_signal_t handle);
inline hsa_signal_t handle_of(Signal* signal) { return {reinterpret_cast<u64>(signal)}; }

bool satisfies(i64 value, hsa_signal_condition_t condition, i64 compare);

// Every change of a value goes through these, so that sleepers see it.
void store_signal(Signal& signal, i64 value);
void add_signal(Signal& signal, i64 value);

// Nanoseconds of the system timestamp.
u64 now();

// A counter of changes to signals, doorbells and queues; wait() returns when it is not `seen` any more, or at the
// deadline. Notifying costs a lock only while somebody sleeps.
class Activity {
public:
    u64 count() const { return count_.load(std::memory_order_acquire); }
    void notify();
    void wait(u64 seen, std::chrono::steady_clock::time_point deadline);

private:
    std::atomic<u64> count_{0};
    std::atomic<u32> sleepers_{0};
};
Activity& activity();

}  // namespace onebit::emulator
