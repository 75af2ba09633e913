#include <cstring>

#include "ggml-backend-impl.h"
#include "tandem/guest.h"

namespace onebit::tandem {
namespace {

class HostRegion final : public Region {
public:
    HostRegion(ggml_backend_dev_t device, const SharedMemory& memory) {
        base_ = static_cast<char*>(memory.host);
        buffer_ = ggml_backend_dev_buffer_from_host_ptr(device, memory.host, memory.size, memory.size);
    }
    HostRegion(const HostRegion&) = delete;
    HostRegion& operator=(const HostRegion&) = delete;
    ~HostRegion() override { ggml_backend_buffer_free(buffer_); }

    bool write(size_t offset, const void* data, size_t bytes) override {
        std::memcpy(base_ + offset, data, bytes);
        return true;
    }
    bool read(size_t offset, void* data, size_t bytes) override {
        std::memcpy(data, base_ + offset, bytes);
        return true;
    }
};

class CpuGuest final : public Guest {
public:
    explicit CpuGuest(ggml_backend_dev_t device) : device_(device) {}
    ggml_backend_dev_t device() const override { return device_; }
    MemoryKinds kinds() const override { return host_pointer; }
    Result<void> probe(const DeviceId&) const override { return {}; }

    Result<std::unique_ptr<Region>> map(SharedMemory memory) override {
        if (memory.kind != host_pointer || memory.host == nullptr)
            return Error{ErrorCode::unsupported, ggml_backend_dev_name(device_), "memory with a host pointer",
                         to_string(memory.kind), "the CPU can be a guest of software Vulkan and of integrated GPUs"};
        auto region = std::make_unique<HostRegion>(device_, memory);
        if (region->buffer() == nullptr)
            return Error{ErrorCode::internal, ggml_backend_dev_name(device_), "a buffer over host memory", "none", ""};
        return std::unique_ptr<Region>(std::move(region));
    }

private:
    ggml_backend_dev_t device_;
};

}  // namespace

Result<std::unique_ptr<Guest>> make_cpu_guest(ggml_backend_dev_t device) {
    return std::unique_ptr<Guest>(std::make_unique<CpuGuest>(device));
}

}  // namespace onebit::tandem
