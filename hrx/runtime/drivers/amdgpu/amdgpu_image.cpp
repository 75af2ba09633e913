// Code objects (HSACO) and their kernels.
#include <algorithm>
#include <vector>

#include "hrx/runtime/drivers/amdgpu/amdgpu_device.h"
#include "hrx/runtime/drivers/elf.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

class AmdgpuImage final : public Image {
public:
    AmdgpuImage(hsa_agent_t agent, std::vector<std::byte> bytes) : agent_(agent), bytes_(std::move(bytes)) {}
    ~AmdgpuImage() override {
        if (executable_.handle != 0) api().hsa_executable_destroy(executable_);
        if (reader_.handle != 0) api().hsa_code_object_reader_destroy(reader_);
    }

    Result<void> load() {
        ONEBIT_HRX_HSA(hsa_code_object_reader_create_from_memory, bytes_.data(), bytes_.size(), &reader_);
        ONEBIT_HRX_HSA(hsa_executable_create_alt, HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                       &executable_);
        ONEBIT_HRX_HSA(hsa_executable_load_agent_code_object, executable_, agent_, reader_, nullptr, nullptr);
        ONEBIT_HRX_HSA(hsa_executable_freeze, executable_, nullptr);
        return {};
    }

    Result<Kernel> find(const std::string& name) override {
        hsa_executable_symbol_t symbol{};
        const hsa_status_t found =
            api().hsa_executable_get_symbol_by_name(executable_, (name + ".kd").c_str(), &agent_, &symbol);
        if (found == HSA_STATUS_ERROR_INVALID_SYMBOL_NAME) {
            return Error{ErrorCode::not_found, "kernel '" + name + "'", "one that the image holds",
                         "hsa_executable_get_symbol_by_name: " + describe(found), ""};
        }
        if (found != HSA_STATUS_SUCCESS) return error("hsa_executable_get_symbol_by_name", found);
        Kernel kernel;
        kernel.name = name;
        ONEBIT_HRX_HSA(hsa_executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                       &kernel.object);
        ONEBIT_HRX_HSA(hsa_executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE,
                       &kernel.info.argument_bytes);
        ONEBIT_HRX_HSA(hsa_executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
                       &kernel.info.static_lds_bytes);
        ONEBIT_HRX_HSA(hsa_executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                       &kernel.info.private_bytes);
        return kernel;
    }

private:
    const hsa_agent_t agent_;
    const std::vector<std::byte> bytes_;  // the reader reads them until it is destroyed
    hsa_code_object_reader_t reader_{};
    hsa_executable_t executable_{};
};

}  // namespace

Result<std::unique_ptr<Image>> AmdgpuDevice::load(std::span<const std::byte> image) {
    if (!elf_is_complete(image)) {
        return Error{ErrorCode::invalid, "image of an executable", "a whole HSACO file",
                     std::to_string(image.size()) + " bytes that are none",
                     "link it for " + std::string(info_.architecture)};
    }
    auto loaded = std::make_unique<AmdgpuImage>(agent_, std::vector<std::byte>(image.begin(), image.end()));
    if (const Result<void> result = loaded->load(); !result.ok()) {
        Error refused = result.error();
        if (refused.code == ErrorCode::io) refused.code = ErrorCode::invalid;
        refused.remedy = "the image must be an HSACO for " + std::string(info_.architecture);
        return refused;
    }
    return std::unique_ptr<Image>(std::move(loaded));
}

}  // namespace onebit::hrx::runtime::amdgpu
