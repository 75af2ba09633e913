#include <string>

#include "tandem/guest.h"
#include "tandem/owner.h"

namespace onebit::tandem {
namespace {

std::string backend_of(ggml_backend_dev_t device) {
    return ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
}

Error wrong_backend(ggml_backend_dev_t device, const char* role, const char* expected) {
    return {ErrorCode::unsupported, std::string("device ") + ggml_backend_dev_name(device),
            std::string("a backend that can be ") + role + " (" + expected + ")", backend_of(device),
            "choose another device for this part of the tandem"};
}

}  // namespace

const char* to_string(MemoryKind kind) {
    switch (kind) {
        case host_pointer:
            return "host pointer";
        case opaque_fd:
            return "opaque fd";
        case dma_buf:
            return "dma-buf";
    }
    return "unknown kind of memory";
}

Result<std::unique_ptr<Owner>> make_owner(ggml_backend_dev_t device) {
    const std::string backend = backend_of(device);
    if (backend == "Vulkan") return make_vulkan_owner(device);
    if (backend == "CPU") return make_cpu_owner(device);
    return wrong_backend(device, "the owner", "Vulkan, CPU");
}

Result<std::unique_ptr<Guest>> make_guest(ggml_backend_dev_t device) {
    const std::string backend = backend_of(device);
    if (backend == "CPU") return make_cpu_guest(device);
    if (backend == "CUDA" || backend == "ROCm") return make_cuda_guest(device);
    return wrong_backend(device, "a guest", "CPU, CUDA, ROCm");
}

}  // namespace onebit::tandem
