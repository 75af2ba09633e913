#include "hrx/runtime/drivers/cuda/libcuda.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/load_library.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::cuda {
namespace {

Functions functions;

// The names of the functions that the library lacks.
std::string resolve(void* library) {
    std::string missing;
#define ONEBIT_HRX_RESOLVE(name, symbol, parameters) \
    functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, symbol));
#define ONEBIT_HRX_CHECK(name, symbol, parameters) \
    if (functions.name == nullptr) missing += std::string(missing.empty() ? "" : ", ") + (symbol);
    ONEBIT_HRX_CUDA_FUNCTIONS(ONEBIT_HRX_RESOLVE)
    ONEBIT_HRX_CUDA_OPTIONAL_FUNCTIONS(ONEBIT_HRX_RESOLVE)
    if (functions.cuGraphAddKernelNode == nullptr) {
        functions.cuGraphAddKernelNode =
            reinterpret_cast<decltype(functions.cuGraphAddKernelNode)>(dlsym(library, "cuGraphAddKernelNode"));
    }
    ONEBIT_HRX_CUDA_FUNCTIONS(ONEBIT_HRX_CHECK)
#undef ONEBIT_HRX_RESOLVE
#undef ONEBIT_HRX_CHECK
    return missing;
}

bool start(ProbeEntry& entry) {
    void* library = load_library(entry.library, entry.detail);
    if (library == nullptr) {
        entry.call = "dlopen";
        return false;
    }
    if (const std::string missing = resolve(library); !missing.empty()) {
        entry.call = "dlsym";
        entry.detail = "not in the library: " + missing;
        return false;
    }
    if (const CUresult result = functions.cuInit(0); result != CUDA_SUCCESS) {
        entry.call = "cuInit";
        entry.detail = describe(result);
        return false;
    }
    int version = 0;
    functions.cuDriverGetVersion(&version);
    entry.detail = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    entry.started = true;
    return true;
}

}  // namespace

const Functions& api() { return functions; }

Result<void> load(std::vector<ProbeEntry>& tried) {
    const char* named = std::getenv("ONEBIT_HRX_LIBCUDA");
    if (named != nullptr && *named != '\0') {
        tried.push_back({"ONEBIT_HRX_LIBCUDA", named, "", "", false});
    } else {
        tried.push_back({"system", "libcuda.so.1", "", "", false});
    }
    if (start(tried.back())) return {};
    return Error{ErrorCode::unavailable, "driver cuda", "a library that starts",
                 tried.back().library + ": " + tried.back().call + ": " + tried.back().detail,
                 "install NVIDIA's driver"};
}

std::string describe(CUresult result) {
    const char *name = nullptr, *text = nullptr;
    if (functions.cuGetErrorName == nullptr || functions.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = nullptr;
    if (functions.cuGetErrorString == nullptr || functions.cuGetErrorString(result, &text) != CUDA_SUCCESS) {
        text = nullptr;
    }
    return std::string(name != nullptr ? name : "CUresult") + " (" + std::to_string(result) +
           (text != nullptr ? ", " + std::string(text) : "") + ")";
}

Error error(const char* call, CUresult result) {
    ErrorCode code = ErrorCode::io;
    std::string remedy;
    switch (result) {
        case CUDA_ERROR_OUT_OF_MEMORY:
            code = ErrorCode::no_space;
            break;
        case CUDA_ERROR_NOT_SUPPORTED:
            code = ErrorCode::unsupported;
            break;
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_LAUNCH_FAILED:
            code = ErrorCode::cancelled;
            break;
        default:
            // 714 to 718: a kernel's fault that ends the context
            if (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result < CUDA_ERROR_LAUNCH_FAILED) {
                code = ErrorCode::cancelled;
            }
    }
    if (code == ErrorCode::cancelled) remedy = "a kernel failed; this process can use the device no more";
    return Error{code, call, "CUDA_SUCCESS", describe(result), remedy};
}

}  // namespace onebit::hrx::runtime::cuda
