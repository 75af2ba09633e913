#include "hrx/runtime/drivers/amdgpu/fault.h"

#include <atomic>
#include <mutex>

#include "hrx/runtime/drivers/amdgpu/libhsa.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

std::mutex mutex;
std::string text;
std::atomic<bool> happened{false};

std::string describe_event(const hsa_amd_event_t& event) {
    if (event.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT) return "the GPU reports a hardware error";
    const hsa_amd_gpu_memory_fault_info_t& info = event.memory_fault;
    std::string why;
    if ((info.fault_reason_mask & HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT) != 0) why += " page not present";
    if ((info.fault_reason_mask & HSA_AMD_MEMORY_FAULT_READ_ONLY) != 0) why += " write to a read-only page";
    if ((info.fault_reason_mask & HSA_AMD_MEMORY_FAULT_NX) != 0) why += " page not executable";
    return "memory fault at " + hexadecimal(info.virtual_address) + (why.empty() ? "" : ":" + why);
}

hsa_status_t on_event(const hsa_amd_event_t* event, void*) {
    const std::lock_guard lock(mutex);
    if (!happened.load(std::memory_order_relaxed)) text = describe_event(*event);
    happened.store(true, std::memory_order_release);
    return HSA_STATUS_SUCCESS;
}

}  // namespace

void watch_faults() {
    if (api().hsa_amd_register_system_event_handler != nullptr) {
        api().hsa_amd_register_system_event_handler(on_event, nullptr);
    }
}

std::optional<std::string> fault() {
    if (!happened.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(mutex);
    return text;
}

}  // namespace onebit::hrx::runtime::amdgpu
