// Handles of the C interface and the objects behind them.
#pragma once

#include "hrx/runtime/objects.h"
#include "hrx/runtime/program.h"
#include "hrx/runtime/status.h"
#include "hrx/runtime/timeline.h"

namespace onebit::hrx::runtime {

inline Device* object(hrx_device* handle) { return reinterpret_cast<Device*>(handle); }
inline Buffer* object(hrx_buffer* handle) { return reinterpret_cast<Buffer*>(handle); }
inline Executable* object(hrx_executable* handle) { return reinterpret_cast<Executable*>(handle); }
inline Program* object(hrx_program* handle) { return reinterpret_cast<Program*>(handle); }
inline Queue* object(hrx_queue* handle) { return reinterpret_cast<Queue*>(handle); }
inline Semaphore* object(hrx_semaphore* handle) { return reinterpret_cast<Semaphore*>(handle); }
inline const Device* object(const hrx_device* handle) { return reinterpret_cast<const Device*>(handle); }
inline const Buffer* object(const hrx_buffer* handle) { return reinterpret_cast<const Buffer*>(handle); }
inline const Program* object(const hrx_program* handle) { return reinterpret_cast<const Program*>(handle); }

// usage naming the parameter when it is NULL.
inline Result<void> check_pointer(const void* pointer, const char* parameter) {
    if (pointer != nullptr) return {};
    return invalid_argument(parameter, "a pointer", "NULL");
}

// Hands an object to the caller as its handle, or the error on.
template <typename Handle, typename Object>
Result<void> give(Result<Ref<Object>> made, Handle** handle) {
    if (!made.ok()) return std::move(made).error();
    *handle = reinterpret_cast<Handle*>(made->leak());
    return {};
}

template <typename T>
Result<void> give_value(Result<T> made, T* value) {
    if (!made.ok()) return std::move(made).error();
    if (value != nullptr) *value = *made;
    return {};
}

}  // namespace onebit::hrx::runtime
