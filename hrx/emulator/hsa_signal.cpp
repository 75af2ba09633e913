// Signals.
#include <algorithm>

#include "hrx/emulator/hsa_exports.h"

using namespace onebit::emulator;  // exported C functions live in the global namespace

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point deadline_after(u64 ticks) {
    // about 146 years, and everything beyond, is forever
    if (ticks >= (u64{1} << 62)) return Clock::time_point::max();
    return Clock::now() + std::chrono::nanoseconds(ticks);
}

i64 wait(hsa_signal_t handle, hsa_signal_condition_t condition, i64 compare, u64 timeout, hsa_wait_state_t) {
    Signal* signal = signal_of(handle);
    if (signal == nullptr) return 0;
    const auto deadline = deadline_after(timeout);
    for (;;) {
        const u64 seen = activity().count();
        const i64 value = signal->value.load(std::memory_order_acquire);
        if (satisfies(value, condition, compare) || Clock::now() >= deadline) return value;
        activity().wait(seen, deadline);
    }
}

void store(hsa_signal_t handle, i64 value) {
    if (Signal* signal = signal_of(handle)) store_signal(*signal, value);
}
void add(hsa_signal_t handle, i64 value) {
    if (Signal* signal = signal_of(handle)) add_signal(*signal, value);
}
i64 load(hsa_signal_t handle) {
    Signal* signal = signal_of(handle);
    return signal == nullptr ? 0 : signal->value.load(std::memory_order_acquire);
}

}  // namespace

extern "C" {

ONEBIT_HSA_EXPORT hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t, const hsa_agent_t*,
                                                 hsa_signal_t* signal) {
    if (signal == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        auto* created = new Signal;
        created->value.store(initial_value);
        *signal = handle_of(created);
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                                     const hsa_agent_t* consumers, uint64_t attributes,
                                                     hsa_signal_t* signal) {
    if ((attributes & ~u64{HSA_AMD_SIGNAL_AMD_GPU_ONLY}) != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return hsa_signal_create(initial_value, num_consumers, consumers, signal);
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_signal_destroy(hsa_signal_t handle) {
    Signal* signal = signal_of(handle);
    if (signal == nullptr || signal->kind != 1) return HSA_STATUS_ERROR_INVALID_SIGNAL;
    if (auto current = device()) current->unwatch(signal);
    signal->magic = 0;
    delete signal;
    return HSA_STATUS_SUCCESS;
}

ONEBIT_HSA_EXPORT hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) { return load(signal); }
ONEBIT_HSA_EXPORT hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) { return load(signal); }
ONEBIT_HSA_EXPORT void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) { store(signal, value); }
ONEBIT_HSA_EXPORT void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
    store(signal, value);
}
ONEBIT_HSA_EXPORT void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value) { add(signal, value); }
ONEBIT_HSA_EXPORT void hsa_signal_add_scacquire(hsa_signal_t signal, hsa_signal_value_t value) { add(signal, value); }
ONEBIT_HSA_EXPORT void hsa_signal_add_screlease(hsa_signal_t signal, hsa_signal_value_t value) { add(signal, value); }
ONEBIT_HSA_EXPORT void hsa_signal_add_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value) { add(signal, value); }
ONEBIT_HSA_EXPORT void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
    add(signal, -value);
}
ONEBIT_HSA_EXPORT void hsa_signal_subtract_scacquire(hsa_signal_t signal, hsa_signal_value_t value) {
    add(signal, -value);
}
ONEBIT_HSA_EXPORT void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
    add(signal, -value);
}
ONEBIT_HSA_EXPORT void hsa_signal_subtract_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value) {
    add(signal, -value);
}

ONEBIT_HSA_EXPORT hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                             hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                                             hsa_wait_state_t wait_state_hint) {
    return wait(signal, condition, compare_value, timeout_hint, wait_state_hint);
}
ONEBIT_HSA_EXPORT hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                               hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                                               hsa_wait_state_t wait_state_hint) {
    return wait(signal, condition, compare_value, timeout_hint, wait_state_hint);
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t handle, hsa_signal_condition_t condition,
                                                            hsa_signal_value_t value, hsa_amd_signal_handler handler,
                                                            void* arg) {
    if (handler == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        Signal* signal = signal_of(handle);
        if (signal == nullptr) return HSA_STATUS_ERROR_INVALID_SIGNAL;
        current.watch(signal, condition, value, handler, arg);
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t* signals,
                                                   hsa_signal_condition_t* conditions, hsa_signal_value_t* values,
                                                   uint64_t timeout_hint, hsa_wait_state_t,
                                                   hsa_signal_value_t* satisfying_value) {
    const auto deadline = deadline_after(timeout_hint);
    for (;;) {
        const u64 seen = activity().count();
        for (u32 k = 0; k < signal_count; ++k) {
            Signal* signal = signal_of(signals[k]);
            if (signal == nullptr) continue;
            const i64 value = signal->value.load(std::memory_order_acquire);
            if (!satisfies(value, conditions[k], values[k])) continue;
            if (satisfying_value != nullptr) *satisfying_value = value;
            return k;
        }
        if (Clock::now() >= deadline) return UINT32_MAX;
        activity().wait(seen, deadline);
    }
}
}
