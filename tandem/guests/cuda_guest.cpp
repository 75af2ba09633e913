#include <cstdlib>
#include <string>

#include "base/log.h"
#include "ggml-backend-impl.h"
#include "tandem/guest.h"
#include "tandem/guests/cuda_driver.h"

namespace onebit::tandem {
namespace {

class ImportedRegion final : public Region {
public:
    ImportedRegion(std::shared_ptr<CudaDriver> driver, CudaDriver::Mapping mapping, ggml_backend_dev_t device,
                   size_t size)
        : driver_(std::move(driver)), mapping_(mapping) {
        base_ = reinterpret_cast<char*>(static_cast<uintptr_t>(mapping.address));
        // ggml-cuda's kernels read the type and the usage of a buffer only; its own free would release foreign memory
        ggml_backend_buffer_i functions = {};
        functions.get_base = [](ggml_backend_buffer_t buffer) -> void* {
            return static_cast<ImportedRegion*>(buffer->context)->base();
        };
        buffer_ = ggml_backend_buffer_init(ggml_backend_dev_buffer_type(device), functions, this, size);
    }
    ImportedRegion(const ImportedRegion&) = delete;
    ImportedRegion& operator=(const ImportedRegion&) = delete;
    ~ImportedRegion() override {
        ggml_backend_buffer_free(buffer_);
        driver_->unmap(mapping_);
    }

    bool write(size_t offset, const void* data, size_t bytes) override {
        return logged(driver_->write(mapping_.address + offset, data, bytes));
    }
    bool read(size_t offset, void* data, size_t bytes) override {
        return logged(driver_->read(mapping_.address + offset, data, bytes));
    }

private:
    static bool logged(const Result<void>& result) {
        if (!result) log_error("tandem", result.error().message());
        return result.ok();
    }
    std::shared_ptr<CudaDriver> driver_;
    CudaDriver::Mapping mapping_;
};

class CudaGuest final : public Guest {
public:
    CudaGuest(ggml_backend_dev_t device, bool hip, std::shared_ptr<CudaDriver> driver)
        : device_(device), driver_(std::move(driver)) {
        identity_.backend = hip ? "ROCm" : "CUDA";
        identity_.name = ggml_backend_dev_name(device);
        if (!hip) identity_.uuid = driver_->uuid();  // HIP's is another value than Vulkan's for the same GPU
        ggml_backend_dev_props properties = {};
        ggml_backend_dev_get_props(device, &properties);
        if (properties.device_id != nullptr)
            if (auto pci = parse_pci_address(properties.device_id)) identity_.pci = *pci;
    }
    ggml_backend_dev_t device() const override { return device_; }
    MemoryKinds kinds() const override { return opaque_fd; }

    Result<void> probe(const DeviceId& owner) const override {
        if (identity_.same_hardware(owner)) return {};
        return Error{ErrorCode::unsupported, identity_.name, "the GPU of " + owner.name, "another GPU",
                     "choose members on one GPU"};
    }

    Result<std::unique_ptr<Region>> map(SharedMemory memory) override {
        if (memory.kind != opaque_fd || !memory.fd)
            return Error{ErrorCode::unsupported, identity_.name, to_string(opaque_fd), to_string(memory.kind), ""};
        auto mapping = driver_->map(memory.fd.get(), memory.allocation);
        if (!mapping) return std::move(mapping).error();
        memory.fd.release();  // the driver's now
        return std::unique_ptr<Region>(std::make_unique<ImportedRegion>(driver_, *mapping, device_, memory.size));
    }

private:
    ggml_backend_dev_t device_;
    std::shared_ptr<CudaDriver> driver_;
    DeviceId identity_;
};

}  // namespace

Result<std::unique_ptr<Guest>> make_cuda_guest(ggml_backend_dev_t device) {
    const std::string name = ggml_backend_dev_name(device);
    const bool hip = std::string(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device))) == "ROCm";
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == name.size())
        return Error{ErrorCode::internal, name, "a device name that ends in its number", name, ""};
    auto driver = open_cuda_driver(hip, std::atoi(name.c_str() + digits));
    if (!driver) return std::move(driver).error();
    return std::unique_ptr<Guest>(
        std::make_unique<CudaGuest>(device, hip, std::shared_ptr<CudaDriver>(std::move(*driver))));
}

}  // namespace onebit::tandem
