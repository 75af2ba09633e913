// hsa_init to hsa_isa_get_info_alt: the system, the two agents (one emulated GPU, one CPU) and the instruction set.
#include <cstdio>
#include <string>

#include "hrx/emulator/hsa_exports.h"

using namespace onebit::emulator;  // exported C functions live in the global namespace

namespace {

std::string isa_name(Device& device) { return "amdgcn-amd-amdhsa--" + device.engine().settings().chip; }

hsa_status_t put_text(void* out, std::size_t bytes, const std::string& text) {
    std::memset(out, 0, bytes);
    std::snprintf(static_cast<char*>(out), bytes, "%s", text.c_str());
    return HSA_STATUS_SUCCESS;
}

// Figures of a Radeon 8060S (Strix Halo), whatever the chip, where a program can see them; PCI address and UUID are of
// no real device.
hsa_status_t gpu_info(const std::string& chip, hsa_agent_info_t attribute, void* value) {
    switch (attribute) {
        case HSA_AGENT_INFO_NAME:
            return put_text(value, 64, chip);
        case HSA_AGENT_INFO_VENDOR_NAME:
            return put_text(value, 64, "AMD");
        case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
            return put_text(value, 64, "onebit emulator (" + chip + ")");
        case HSA_AMD_AGENT_INFO_UUID:
            return put_text(value, 21, "GPU-0e0e0e0e0e0e" + chip.substr(3));
        case HSA_AGENT_INFO_FEATURE:
            return put(value, u32{HSA_AGENT_FEATURE_KERNEL_DISPATCH});
        case HSA_AGENT_INFO_MACHINE_MODEL:
            return put(value, HSA_MACHINE_MODEL_LARGE);
        case HSA_AGENT_INFO_PROFILE:
            return put(value, HSA_PROFILE_BASE);
        case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
            return put(value, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR);
        case HSA_AGENT_INFO_WAVEFRONT_SIZE:
            return put(value, u32{32});
        case HSA_AGENT_INFO_WORKGROUP_MAX_DIM: {
            const u16 most[3] = {1024, 1024, 1024};
            return put(value, most);
        }
        case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
            return put(value, u32{1024});
        case HSA_AGENT_INFO_GRID_MAX_DIM:
            return put(value, hsa_dim3_t{0xffffffffu, 0xffffffffu, 0xffffffffu});
        case HSA_AGENT_INFO_GRID_MAX_SIZE:
            return put(value, u32{0xffffffffu});
        case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
            return put(value, u32{32});
        case HSA_AGENT_INFO_QUEUES_MAX:
            return put(value, u32{128});
        case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
            return put(value, u32{64});
        case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
            return put(value, u32{131072});
        case HSA_AGENT_INFO_QUEUE_TYPE:
            return put(value, u32{HSA_QUEUE_TYPE_MULTI});
        case HSA_AGENT_INFO_NODE:
            return put(value, u32{1});
        case HSA_AGENT_INFO_DEVICE:
            return put(value, HSA_DEVICE_TYPE_GPU);
        case HSA_AGENT_INFO_CACHE_SIZE: {
            const u32 bytes[4] = {32 * 1024, 2 * 1024 * 1024, 0, 0};
            return put(value, bytes);
        }
        case HSA_AGENT_INFO_ISA:
            return put(value, kIsa);
        case HSA_AGENT_INFO_VERSION_MAJOR:
            return put(value, u16{1});
        case HSA_AGENT_INFO_VERSION_MINOR:
            return put(value, u16{1});
        case HSA_AGENT_INFO_FAST_F16_OPERATION:
            return put(value, true);
        case HSA_AMD_AGENT_INFO_CHIP_ID:
            return put(value, u32{0x1586});
        case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
            return put(value, u32{128});
        case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
            return put(value, u32{40});
        case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
            return put(value, u32{2900});
        case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
            return put(value, u32{1});
        case HSA_AMD_AGENT_INFO_BDFID:
            return put(value, u32{0xe000});
        case HSA_AMD_AGENT_INFO_DOMAIN:
            return put(value, u32{0});
        case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
            return put(value, u32{256});
        case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
            return put(value, u32{1000});
        case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
            return put(value, u32{32});
        case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
            return put(value, u32{2});
        case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
            return put(value, u32{2});
        case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
            return put(value, u32{2});
        case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
            return put(value, false);
        case HSA_AMD_AGENT_INFO_ASIC_REVISION:
            return put(value, u32{0});
        case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
            return put(value, true);
        case HSA_AMD_AGENT_INFO_MEMORY_AVAIL:
            return put(value, u64{1} << 34);
        case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
            return put(value, u64{1000000000});
        case HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID:
            return put(value, u32{0x96});
        case HSA_AMD_AGENT_INFO_DRIVER_UID:
            return put(value, u32{1});
        case HSA_AMD_AGENT_INFO_NEAREST_CPU:
            return put(value, kCpuAgent);
        case HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES: {
            const u8 bits[8] = {1};
            return put(value, bits);
        }
        default:
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

hsa_status_t cpu_info(hsa_agent_info_t attribute, void* value) {
    switch (attribute) {
        case HSA_AGENT_INFO_NAME:
            return put_text(value, 64, "host");
        case HSA_AGENT_INFO_VENDOR_NAME:
            return put_text(value, 64, "CPU");
        case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
            return put_text(value, 64, "host");
        case HSA_AMD_AGENT_INFO_UUID:
            return put_text(value, 21, "CPU-XX");
        case HSA_AGENT_INFO_FEATURE:
            return put(value, u32{0});
        case HSA_AGENT_INFO_PROFILE:
            return put(value, HSA_PROFILE_FULL);
        case HSA_AGENT_INFO_NODE:
            return put(value, u32{0});
        case HSA_AGENT_INFO_DEVICE:
            return put(value, HSA_DEVICE_TYPE_CPU);
        case HSA_AGENT_INFO_QUEUES_MAX:
            return put(value, u32{0});
        case HSA_AMD_AGENT_INFO_BDFID:
            return put(value, u32{0});
        case HSA_AMD_AGENT_INFO_DOMAIN:
            return put(value, u32{0});
        case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
            return put(value, u32{0});
        default:
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

const char* status_text(hsa_status_t status) {
    switch (status) {
        case HSA_STATUS_SUCCESS:
            return "HSA_STATUS_SUCCESS: success";
        case HSA_STATUS_INFO_BREAK:
            return "HSA_STATUS_INFO_BREAK: a callback ended the iteration";
        case HSA_STATUS_ERROR:
            return "HSA_STATUS_ERROR: an error without a closer name";
        case HSA_STATUS_ERROR_INVALID_ARGUMENT:
            return "HSA_STATUS_ERROR_INVALID_ARGUMENT: an argument is not allowed";
        case HSA_STATUS_ERROR_INVALID_QUEUE_CREATION:
            return "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION: no such queue can be made";
        case HSA_STATUS_ERROR_INVALID_ALLOCATION:
            return "HSA_STATUS_ERROR_INVALID_ALLOCATION: no such allocation";
        case HSA_STATUS_ERROR_INVALID_AGENT:
            return "HSA_STATUS_ERROR_INVALID_AGENT: no such agent";
        case HSA_STATUS_ERROR_INVALID_SIGNAL:
            return "HSA_STATUS_ERROR_INVALID_SIGNAL: no such signal";
        case HSA_STATUS_ERROR_INVALID_QUEUE:
            return "HSA_STATUS_ERROR_INVALID_QUEUE: no such queue";
        case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
            return "HSA_STATUS_ERROR_OUT_OF_RESOURCES: memory or handles ran out";
        case HSA_STATUS_ERROR_INVALID_PACKET_FORMAT:
            return "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: a field of a packet is wrong";
        case HSA_STATUS_ERROR_NOT_INITIALIZED:
            return "HSA_STATUS_ERROR_NOT_INITIALIZED: hsa_init was not called";
        case HSA_STATUS_ERROR_INVALID_ISA:
            return "HSA_STATUS_ERROR_INVALID_ISA: no such instruction set";
        case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
            return "HSA_STATUS_ERROR_INVALID_CODE_OBJECT: the code object is damaged";
        case HSA_STATUS_ERROR_INVALID_EXECUTABLE:
            return "HSA_STATUS_ERROR_INVALID_EXECUTABLE: no such executable";
        case HSA_STATUS_ERROR_FROZEN_EXECUTABLE:
            return "HSA_STATUS_ERROR_FROZEN_EXECUTABLE: it is frozen already";
        case HSA_STATUS_ERROR_INVALID_SYMBOL_NAME:
            return "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME: no symbol of that name";
        case HSA_STATUS_ERROR_EXCEPTION:
            return "HSA_STATUS_ERROR_EXCEPTION: a kernel did what hardware does not define";
        case HSA_STATUS_ERROR_INVALID_MEMORY_POOL:
            return "HSA_STATUS_ERROR_INVALID_MEMORY_POOL: no such memory pool";
        case HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION:
            return "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: a misaligned access";
        case HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION:
            return "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: an instruction that is not interpreted";
        case HSA_STATUS_ERROR_MEMORY_FAULT:
            return "HSA_STATUS_ERROR_MEMORY_FAULT: an address outside of every allocation";
        case HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER:
            return "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER: no such code object reader";
        case HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL:
            return "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL: no such symbol";
        case HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS:
            return "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS: the code object is for another processor";
        case HSA_STATUS_ERROR_FATAL:
            return "HSA_STATUS_ERROR_FATAL: the runtime failed";
        default:
            return nullptr;
    }
}

}  // namespace

extern "C" {

ONEBIT_HSA_EXPORT hsa_status_t hsa_init() {
    try {
        return retain_device() ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    } catch (const std::exception&) {
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_shut_down() {
    return release_device() ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_NOT_INITIALIZED;
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_status_string(hsa_status_t status, const char** status_string) {
    if (status_string == nullptr || status_text(status) == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    *status_string = status_text(status);
    return HSA_STATUS_SUCCESS;
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        switch (attribute) {
            case HSA_SYSTEM_INFO_VERSION_MAJOR:
                return put(value, u16{1});
            case HSA_SYSTEM_INFO_VERSION_MINOR:
                return put(value, u16{2});
            case HSA_SYSTEM_INFO_TIMESTAMP:
                return put(value, now());
            case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
                return put(value, u64{1000000000});
            case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
                return put(value, ~u64{0});
            case HSA_SYSTEM_INFO_ENDIANNESS:
                return put(value, HSA_ENDIANNESS_LITTLE);
            case HSA_SYSTEM_INFO_MACHINE_MODEL:
                return put(value, HSA_MACHINE_MODEL_LARGE);
            case HSA_AMD_SYSTEM_INFO_BUILD_VERSION:
                return put(value, static_cast<const char*>("onebit emulator"));
            case HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED:
                return put(value, true);
            case HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED:
                return put(value, false);
            case HSA_AMD_SYSTEM_INFO_XNACK_ENABLED:
                return put(value, false);
            case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR:
                return put(value, u16{1});
            case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR:
                return put(value, u16{6});
            default:
                return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        }
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
    if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        for (hsa_agent_t agent : {kCpuAgent, kGpuAgent})
            if (hsa_status_t status = callback(agent, data); status != HSA_STATUS_SUCCESS) return status;
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& device) {
        if (agent.handle == kGpuAgent.handle) return gpu_info(device.engine().settings().chip, attribute, value);
        if (agent.handle == kCpuAgent.handle) return cpu_info(attribute, value);
        return HSA_STATUS_ERROR_INVALID_AGENT;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t, void*),
                                                      void* data) {
    if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        if (agent.handle == kCpuAgent.handle) return HSA_STATUS_SUCCESS;
        return agent.handle == kGpuAgent.handle ? callback(kIsa, data) : HSA_STATUS_ERROR_INVALID_AGENT;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void* value) {
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& device) {
        if (isa.handle != kIsa.handle) return HSA_STATUS_ERROR_INVALID_ISA;
        const std::string name = isa_name(device);
        switch (attribute) {
            case HSA_ISA_INFO_NAME_LENGTH:
                return put(value, static_cast<u32>(name.size() + 1));
            case HSA_ISA_INFO_NAME:
                return put_text(value, name.size() + 1, name);
            case HSA_ISA_INFO_FAST_F16_OPERATION:
                return put(value, true);
            case HSA_ISA_INFO_WORKGROUP_MAX_DIM:
                return gpu_info("", HSA_AGENT_INFO_WORKGROUP_MAX_DIM, value);
            case HSA_ISA_INFO_WORKGROUP_MAX_SIZE:
                return put(value, u32{1024});
            case HSA_ISA_INFO_GRID_MAX_DIM:
                return gpu_info("", HSA_AGENT_INFO_GRID_MAX_DIM, value);
            case HSA_ISA_INFO_GRID_MAX_SIZE:
                return put(value, ~u64{0});
            default:
                return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        }
    });
}

// Not part of HSA: the text of the last trap, for tests and for drivers that want to say more than a status. Valid
// until the calling thread's next call.
ONEBIT_HSA_EXPORT const char* onebit_emulator_last_trap() {
    static thread_local std::string text;
    auto current = device();
    text = current == nullptr ? std::string() : current->last_trap();
    return text.c_str();
}

// Not part of HSA: wave instructions executed since hsa_init.
ONEBIT_HSA_EXPORT unsigned long long onebit_emulator_instructions() {
    auto current = device();
    return current == nullptr ? 0 : current->engine().instructions();
}
}
