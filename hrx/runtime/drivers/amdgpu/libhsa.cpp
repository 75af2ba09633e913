#include "hrx/runtime/drivers/amdgpu/libhsa.h"

#include "base/load_library.h"
#include "hrx/runtime/drivers/amdgpu/fault.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

Functions functions;
std::vector<hsa_agent_t> gpus, cpus;

std::string resolve(void* library) {
    std::string missing;
#define ONEBIT_HRX_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name));
#define ONEBIT_HRX_CHECK(name) \
    if (functions.name == nullptr) missing += std::string(missing.empty() ? "" : ", ") + #name;
    ONEBIT_HRX_HSA_FUNCTIONS(ONEBIT_HRX_RESOLVE)
    ONEBIT_HRX_HSA_OPTIONAL_FUNCTIONS(ONEBIT_HRX_RESOLVE)
    ONEBIT_HRX_HSA_FUNCTIONS(ONEBIT_HRX_CHECK)
#undef ONEBIT_HRX_RESOLVE
#undef ONEBIT_HRX_CHECK
    return missing;
}

hsa_status_t keep_agent(hsa_agent_t agent, void*) {
    hsa_device_type_t type{};
    if (functions.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) != HSA_STATUS_SUCCESS) {
        return HSA_STATUS_SUCCESS;
    }
    if (type == HSA_DEVICE_TYPE_GPU) gpus.push_back(agent);
    if (type == HSA_DEVICE_TYPE_CPU) cpus.push_back(agent);
    return HSA_STATUS_SUCCESS;
}

bool failed(ProbeEntry& entry, const char* call, std::string detail) {
    entry.call = call;
    entry.detail = std::move(detail);
    return false;
}

bool start(ProbeEntry& entry) {
    std::string problem;
    void* library = load_library(entry.library, problem);
    if (library == nullptr) return failed(entry, "dlopen", std::move(problem));
    if (const std::string missing = resolve(library); !missing.empty()) {
        return failed(entry, "dlsym", "not in the library: " + missing);
    }
    if (const hsa_status_t status = functions.hsa_init(); status != HSA_STATUS_SUCCESS) {
        return failed(entry, "hsa_init", describe(status));
    }
    gpus.clear();
    cpus.clear();
    const hsa_status_t listed = functions.hsa_iterate_agents(keep_agent, nullptr);
    uint16_t major = 0, minor = 0;
    functions.hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
    functions.hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
    const std::string version = "HSA " + std::to_string(major) + "." + std::to_string(minor);
    if (listed != HSA_STATUS_SUCCESS || gpus.empty() || cpus.empty()) {
        // an older library does not know a newer chip: another may
        functions.hsa_shut_down();
        return failed(entry, "hsa_iterate_agents",
                      listed != HSA_STATUS_SUCCESS ? describe(listed) : version + " shows no GPU that it knows");
    }
    watch_faults();
    entry.detail = version + ", " + std::to_string(gpus.size()) + (gpus.size() == 1 ? " GPU" : " GPUs");
    entry.started = true;
    return true;
}

}  // namespace

const Functions& api() { return functions; }
const std::vector<hsa_agent_t>& gpu_agents() { return gpus; }
const std::vector<hsa_agent_t>& cpu_agents() { return cpus; }

Result<void> load(std::vector<ProbeEntry>& tried) {
    const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
    std::string told;
    for (const Candidate& candidate : candidates("", environment)) {
        tried.push_back({candidate.origin, candidate.library, "", "", false});
        ProbeEntry& entry = tried.back();
        if (!candidate.missing.empty()) {
            failed(entry, "search", candidate.missing);
        } else if (start(entry)) {
            return {};
        }
        told += (told.empty() ? "" : "; ") + entry.library + ": " + entry.call + ": " + entry.detail;
    }
    return Error{ErrorCode::unavailable, "driver amdgpu", "a libhsa-runtime64 that starts and knows the GPU", told,
                 "install ROCm, or name its library with ONEBIT_HRX_LIBHSA"};
}

std::string describe(hsa_status_t status) {
    const char* text = nullptr;
    if (functions.hsa_status_string == nullptr || functions.hsa_status_string(status, &text) != HSA_STATUS_SUCCESS ||
        text == nullptr) {
        return "hsa_status_t " + hexadecimal(status);
    }
    return hexadecimal(status) + " (" + text + ")";
}

Error error(const char* call, hsa_status_t status) {
    ErrorCode code = ErrorCode::io;
    switch (status) {
        case HSA_STATUS_ERROR_OUT_OF_RESOURCES:
            code = ErrorCode::no_space;
            break;
        case HSA_STATUS_ERROR_INVALID_CODE_OBJECT:
        case HSA_STATUS_ERROR_INVALID_FILE:
        case HSA_STATUS_ERROR_INVALID_ISA:
        case HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS:
            code = ErrorCode::invalid;
            break;
        case HSA_STATUS_ERROR_MEMORY_FAULT:
        case HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION:
        case HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION:
        case HSA_STATUS_ERROR_EXCEPTION:
        case HSA_STATUS_ERROR_FATAL:
            code = ErrorCode::cancelled;
            break;
        default:
            break;
    }
    return Error{code, call, "HSA_STATUS_SUCCESS", describe(status), ""};
}

}  // namespace onebit::hrx::runtime::amdgpu
