#include "ggml-backend-impl.h"
#include "tandem/owner.h"

namespace onebit::tandem {
namespace {

class CpuOwner final : public Owner {
public:
    explicit CpuOwner(ggml_backend_dev_t device) : device_(device) {
        identity_.backend = "CPU";
        identity_.name = ggml_backend_dev_name(device);
    }
    ggml_backend_dev_t device() const override { return device_; }
    const DeviceId& identity() const override { return identity_; }
    MemoryKinds kinds() const override { return host_pointer; }

    Result<ggml_backend_buffer_t> allocate(size_t size, MemoryKinds) override {
        ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device_), size);
        if (buffer == nullptr)
            return Error{ErrorCode::no_space, identity_.name, std::to_string(size) + " bytes of memory", "less", ""};
        return buffer;
    }

    Result<SharedMemory> share(ggml_backend_buffer_t buffer, MemoryKind kind) override {
        if (kind != host_pointer)
            return Error{ErrorCode::unsupported, identity_.name, to_string(host_pointer), to_string(kind), ""};
        SharedMemory memory;
        memory.host = host(buffer);
        memory.size = memory.allocation = ggml_backend_buffer_get_size(buffer);
        return memory;
    }

    void* host(ggml_backend_buffer_t buffer) const override { return ggml_backend_buffer_get_base(buffer); }

private:
    ggml_backend_dev_t device_;
    DeviceId identity_;
};

}  // namespace

Result<std::unique_ptr<Owner>> make_cpu_owner(ggml_backend_dev_t device) {
    return std::unique_ptr<Owner>(std::make_unique<CpuOwner>(device));
}

}  // namespace onebit::tandem
