#include "hrx/emulator/signal.h"

#include <condition_variable>
#include <mutex>

namespace onebit::emulator {
namespace {

// never destroyed: threads of the host program may still wait while it exits
std::mutex& sleep_mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
}
std::condition_variable& sleep_condition() {
    static auto* condition = new std::condition_variable;
    return *condition;
}

}  // namespace

Signal* signal_of(hsa_signal_t handle) {
    if (handle.handle == 0 || handle.handle % alignof(Signal) != 0) return nullptr;
    auto* signal = reinterpret_cast<Signal*>(handle.handle);
    return signal->magic == Signal::kMagic ? signal : nullptr;
}

bool satisfies(i64 value, hsa_signal_condition_t condition, i64 compare) {
    switch (condition) {
        case HSA_SIGNAL_CONDITION_EQ:
            return value == compare;
        case HSA_SIGNAL_CONDITION_NE:
            return value != compare;
        case HSA_SIGNAL_CONDITION_LT:
            return value < compare;
        case HSA_SIGNAL_CONDITION_GTE:
            return value >= compare;
    }
    return false;
}

void store_signal(Signal& signal, i64 value) {
    signal.value.store(value, std::memory_order_release);
    activity().notify();
}
void add_signal(Signal& signal, i64 value) {
    signal.value.fetch_add(value, std::memory_order_acq_rel);
    activity().notify();
}

u64 now() {
    return static_cast<u64>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

Activity& activity() {
    static auto* instance = new Activity;
    return *instance;
}

void Activity::notify() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    std::lock_guard lock(sleep_mutex());
    sleep_condition().notify_all();
}

void Activity::wait(u64 seen, std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(sleep_mutex());
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    auto changed = [&] { return count_.load(std::memory_order_seq_cst) != seen; };
    // a far deadline overflows the clock's arithmetic in wait_until
    if (deadline == std::chrono::steady_clock::time_point::max())
        sleep_condition().wait(lock, changed);
    else
        sleep_condition().wait_until(lock, deadline, changed);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace onebit::emulator
