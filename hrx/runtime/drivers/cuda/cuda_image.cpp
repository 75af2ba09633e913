// Modules of PTX or machine code, and their functions.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "hrx/runtime/drivers/cuda/cuda_device.h"
#include "hrx/runtime/drivers/elf.h"

namespace onebit::hrx::runtime::cuda {
namespace {

class CudaImage final : public Image {
public:
    CudaImage(CUcontext context, CUmodule module) : context_(context), module_(module) {}
    ~CudaImage() override {
        const ContextScope scope(context_);
        api().cuModuleUnload(module_);
    }

    Result<Kernel> find(const std::string& name) override {
        // libcuda has another error for it
        if (name.empty()) return Error{ErrorCode::not_found, "kernel ''", "one that the image holds", "no name", ""};
        const ContextScope scope(context_);
        CUfunction function = nullptr;
        const CUresult found = api().cuModuleGetFunction(&function, module_, name.c_str());
        if (found == CUDA_ERROR_NOT_FOUND) {
            return Error{ErrorCode::not_found, "kernel '" + name + "'", "one that the image holds",
                         "cuModuleGetFunction: " + describe(found), ""};
        }
        if (found != CUDA_SUCCESS) return error("cuModuleGetFunction", found);
        Kernel kernel;
        kernel.name = name;
        kernel.object = reinterpret_cast<uint64_t>(function);
        int threads = 0, shared = 0, local = 0;
        ONEBIT_HRX_CUDA(cuFuncGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
        ONEBIT_HRX_CUDA(cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
        ONEBIT_HRX_CUDA(cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
        kernel.info.max_workgroup_size = static_cast<uint32_t>(threads);
        kernel.info.static_lds_bytes = static_cast<uint32_t>(shared);
        kernel.info.private_bytes = static_cast<uint32_t>(local);
        return kernel;
    }

private:
    const CUcontext context_;
    const CUmodule module_;
};

// libcuda takes no size, so what it would read beyond the end must not begin.
Result<void> check_complete(std::span<const std::byte> image) {
    if (image.size() < 4) {
        return Error{ErrorCode::invalid, "image of an executable", "PTX or a cubin",
                     std::to_string(image.size()) + " bytes", ""};
    }
    if (std::memcmp(image.data(), "\177ELF", 4) == 0) {
        if (elf_is_complete(image)) return {};
        return Error{ErrorCode::invalid, "image of an executable", "a whole cubin", "one that is cut short", ""};
    }
    constexpr uint32_t fatbin_magic = 0xBA55ED50;
    uint32_t magic = 0;
    std::memcpy(&magic, image.data(), sizeof magic);
    if (magic == fatbin_magic) {
        return Error{ErrorCode::unsupported, "image of an executable", "PTX or a cubin", "a fat binary",
                     "take its PTX or cubin out with cuobjdump"};
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<Image>> CudaDevice::load(std::span<const std::byte> image) {
    ONEBIT_RETURN_IF_ERROR(check_complete(image));
    // PTX must end with a zero, which the caller's bytes need not have
    std::vector<char> copy(image.size() + 1);
    std::memcpy(copy.data(), image.data(), image.size());
    std::vector<char> log(8192);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), std::bit_cast<void*>(log.size() - 1)};
    const ContextScope scope(context_);
    CUmodule module = nullptr;
    const CUresult result = api().cuModuleLoadDataEx(&module, copy.data(), 2, options, values);
    if (result != CUDA_SUCCESS) {
        Error refused = error("cuModuleLoadDataEx", result);
        if (log.front() != '\0') refused.found += ": " + std::string(log.data());
        if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
            result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
            refused.code = ErrorCode::invalid;
            refused.remedy = "the image must be PTX or a cubin for " + std::string(info_.architecture);
        }
        return refused;
    }
    return std::unique_ptr<Image>(std::make_unique<CudaImage>(context_, module));
}

}  // namespace onebit::hrx::runtime::cuda
