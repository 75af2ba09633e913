// What the files with the exported HSA functions share.
#pragma once

#include <cstring>
#include <exception>
#include <new>

#include "hrx/emulator/device.h"
#include "hrx/hsa/hsa_api.h"

#define ONEBIT_HSA_EXPORT __attribute__((visibility("default")))

namespace onebit::emulator {

inline constexpr hsa_agent_t kGpuAgent{1};
inline constexpr hsa_agent_t kCpuAgent{2};
inline constexpr hsa_isa_t kIsa{1};

// Runs `body` with the device; not initialised without one, and no exception leaves.
template <typename Body>
hsa_status_t with_device(Body body) noexcept {
    try {
        auto current = device();
        if (current == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
        return body(*current);
    } catch (const std::bad_alloc&) {
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    } catch (const std::exception&) {
        return HSA_STATUS_ERROR_FATAL;
    }
}

template <typename T>
hsa_status_t put(void* out, const T& value) {
    std::memcpy(out, &value, sizeof(T));
    return HSA_STATUS_SUCCESS;
}

}  // namespace onebit::emulator
