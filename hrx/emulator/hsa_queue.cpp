// Queues, their indices, and profiling.
#include <bit>

#include "hrx/emulator/hsa_exports.h"

using namespace onebit::emulator;  // exported C functions live in the global namespace

namespace {

Queue& queue_of(const hsa_queue_t* queue) { return *reinterpret_cast<Queue*>(const_cast<hsa_queue_t*>(queue)); }

}  // namespace

extern "C" {

ONEBIT_HSA_EXPORT hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type,
                                                void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                                                uint32_t, uint32_t, hsa_queue_t** queue) {
    if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        if (agent.handle == kCpuAgent.handle) return HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
        if (agent.handle != kGpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
        if (type != HSA_QUEUE_TYPE_MULTI && type != HSA_QUEUE_TYPE_SINGLE)
            return HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
        if (!std::has_single_bit(size) || size < 64 || size > 131072) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        Queue* created = current.create_queue(size, type, callback, data);
        if (created == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
        *queue = &created->hsa;
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
    if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        return current.destroy_queue(reinterpret_cast<Queue*>(queue)) ? HSA_STATUS_SUCCESS
                                                                      : HSA_STATUS_ERROR_INVALID_QUEUE;
    });
}

ONEBIT_HSA_EXPORT uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t* queue) {
    return queue_of(queue).read_index.load(std::memory_order_relaxed);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue) {
    return queue_of(queue).read_index.load(std::memory_order_acquire);
}
// The read index belongs to the packet processor; HSA lets only the owner of a soft queue move it.
ONEBIT_HSA_EXPORT void hsa_queue_store_read_index_relaxed(const hsa_queue_t*, uint64_t) {}
ONEBIT_HSA_EXPORT void hsa_queue_store_read_index_screlease(const hsa_queue_t*, uint64_t) {}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t* queue) {
    return queue_of(queue).write_index.load(std::memory_order_relaxed);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t* queue) {
    return queue_of(queue).write_index.load(std::memory_order_acquire);
}
ONEBIT_HSA_EXPORT void hsa_queue_store_write_index_relaxed(const hsa_queue_t* queue, uint64_t value) {
    queue_of(queue).write_index.store(value, std::memory_order_relaxed);
}
ONEBIT_HSA_EXPORT void hsa_queue_store_write_index_screlease(const hsa_queue_t* queue, uint64_t value) {
    queue_of(queue).write_index.store(value, std::memory_order_release);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t* queue, uint64_t value) {
    return queue_of(queue).write_index.fetch_add(value, std::memory_order_relaxed);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_add_write_index_scacquire(const hsa_queue_t* queue, uint64_t value) {
    return queue_of(queue).write_index.fetch_add(value, std::memory_order_acquire);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t* queue, uint64_t value) {
    return queue_of(queue).write_index.fetch_add(value, std::memory_order_release);
}
ONEBIT_HSA_EXPORT uint64_t hsa_queue_add_write_index_scacq_screl(const hsa_queue_t* queue, uint64_t value) {
    return queue_of(queue).write_index.fetch_add(value, std::memory_order_acq_rel);
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* queue, int enable) {
    if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
    queue_of(queue).profiled.store(enable != 0);
    return HSA_STATUS_SUCCESS;
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t handle,
                                                                   hsa_amd_profiling_dispatch_time_t* time) {
    if (time == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (agent.handle != kGpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
    Signal* signal = signal_of(handle);
    if (signal == nullptr) return HSA_STATUS_ERROR_INVALID_SIGNAL;
    time->start = signal->start.load();
    time->end = signal->end.load();
    return time->start == 0 ? HSA_STATUS_ERROR : HSA_STATUS_SUCCESS;
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t agent, uint64_t agent_tick,
                                                                               uint64_t* system_tick) {
    if (system_tick == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (agent.handle != kGpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
    *system_tick = agent_tick;
    return HSA_STATUS_SUCCESS;
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback,
                                                                     void* data) {
    if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        current.on_event(callback, data);
        return HSA_STATUS_SUCCESS;
    });
}
}
