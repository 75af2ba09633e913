// Memory of a CUDA device: cuMemAlloc as a rule, virtual memory management for what is exported, imports by
// external-memory objects (Vulkan's exports) or shareable handles (exports of cuMemExportToShareableHandle).
#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "base/error.h"
#include "hrx/runtime/drivers/cuda/cuda_device.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::cuda {
namespace {

class CudaMemory : public Memory {
public:
    explicit CudaMemory(CUcontext context) : context_(context) {}

protected:
    const CUcontext context_;
};

class PlainMemory final : public CudaMemory {
public:
    using CudaMemory::CudaMemory;
    ~PlainMemory() override {
        const ContextScope scope(context_);
        if (address != 0) api().cuMemFree(address);
    }
};

class HostMemory final : public CudaMemory {
public:
    using CudaMemory::CudaMemory;
    ~HostMemory() override {
        const ContextScope scope(context_);
        if (host != nullptr) api().cuMemFreeHost(host);
    }
};

class RegisteredMemory final : public CudaMemory {
public:
    using CudaMemory::CudaMemory;
    ~RegisteredMemory() override {
        const ContextScope scope(context_);
        if (host != nullptr) api().cuMemHostUnregister(host);
    }
};

// A physical allocation mapped at an address of its own.
class MappedMemory final : public CudaMemory {
public:
    using CudaMemory::CudaMemory;
    ~MappedMemory() override {
        const ContextScope scope(context_);
        if (mapped_) api().cuMemUnmap(base_, bytes_);
        if (base_ != 0) api().cuMemAddressFree(base_, bytes_);
        if (handle_ != 0) api().cuMemRelease(handle_);
    }
    // Takes over the handle. bytes: a multiple of the granularity.
    Result<void> map(CUmemGenericAllocationHandle handle, CUdevice device, size_t bytes) {
        handle_ = handle;
        bytes_ = bytes;
        ONEBIT_HRX_CUDA(cuMemAddressReserve, &base_, bytes, 0, 0, 0);
        ONEBIT_HRX_CUDA(cuMemMap, base_, bytes, 0, handle_, 0);
        mapped_ = true;
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        ONEBIT_HRX_CUDA(cuMemSetAccess, base_, bytes, &access, 1);
        return {};
    }
    CUmemGenericAllocationHandle handle() const { return handle_; }
    CUdeviceptr base() const { return base_; }
    size_t bytes() const { return bytes_; }

private:
    CUmemGenericAllocationHandle handle_ = 0;
    CUdeviceptr base_ = 0;
    size_t bytes_ = 0;
    bool mapped_ = false;
};

class ExternalMemory final : public CudaMemory {
public:
    using CudaMemory::CudaMemory;
    ~ExternalMemory() override {
        const ContextScope scope(context_);
        // the reference asks for the mapping to be freed before the object
        if (address != 0) api().cuMemFree(address);
        if (memory != nullptr) api().cuDestroyExternalMemory(memory);
    }
    CUexternalMemory memory = nullptr;
};

CUmemAllocationProp exportable_properties(CUdevice device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    return properties;
}

Result<size_t> round_to_granularity(CUdevice device, uint64_t size) {
    const CUmemAllocationProp properties = exportable_properties(device);
    size_t granularity = 0;
    ONEBIT_HRX_CUDA(cuMemGetAllocationGranularity, &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return (size + granularity - 1) / granularity * granularity;
}

// What Vulkan exports, and on some drivers what CUDA exports.
Result<std::unique_ptr<Memory>> import_external(CUcontext context, int fd, uint64_t allocation_size, uint64_t offset,
                                                uint64_t size) {
    auto memory = std::make_unique<ExternalMemory>(context);
    // a successful import takes the descriptor over
    UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return error_from_errno(errno, "file descriptor to import");
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
    description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = own.get();
    description.size = allocation_size;
    // Vulkan's side is always a dedicated allocation: others collapse on random access
    description.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
    ONEBIT_HRX_CUDA(cuImportExternalMemory, &memory->memory, &description);
    own.release();
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
    buffer.offset = offset;
    buffer.size = size;
    CUdeviceptr address = 0;
    ONEBIT_HRX_CUDA(cuExternalMemoryGetMappedBuffer, &address, memory->memory, &buffer);
    memory->address = address;
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> import_shareable(CUcontext context, CUdevice device, int fd, uint64_t allocation_size,
                                                 uint64_t offset, uint64_t size) {
    const auto bytes = round_to_granularity(device, allocation_size);
    if (!bytes.ok()) return bytes.error();
    CUmemGenericAllocationHandle handle = 0;
    void* shareable = std::bit_cast<void*>(uintptr_t{static_cast<unsigned>(fd)});
    ONEBIT_HRX_CUDA(cuMemImportFromShareableHandle, &handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    auto memory = std::make_unique<MappedMemory>(context);
    ONEBIT_RETURN_IF_ERROR(memory->map(handle, device, *bytes));
    memory->address = memory->base() + offset;
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

}  // namespace

Result<std::unique_ptr<Memory>> CudaDevice::allocate(hrx_memory kind, bool exportable, uint64_t size) {
    const ContextScope scope(context_);
    if (exportable) return allocate_exportable(size);
    if (kind == HRX_MEMORY_HOST) {
        auto memory = std::make_unique<HostMemory>(context_);
        ONEBIT_HRX_CUDA(cuMemHostAlloc, &memory->host, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        CUdeviceptr address = 0;
        ONEBIT_HRX_CUDA(cuMemHostGetDevicePointer, &address, memory->host, 0);
        memory->address = address;
        memory->size = size;
        return std::unique_ptr<Memory>(std::move(memory));
    }
    auto memory = std::make_unique<PlainMemory>(context_);
    CUdeviceptr address = 0;
    ONEBIT_HRX_CUDA(cuMemAlloc, &address, size);
    memory->address = address;
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> CudaDevice::allocate_exportable(uint64_t size) {
    const auto bytes = round_to_granularity(device_, size);
    if (!bytes.ok()) return bytes.error();
    const CUmemAllocationProp properties = exportable_properties(device_);
    CUmemGenericAllocationHandle handle = 0;
    ONEBIT_HRX_CUDA(cuMemCreate, &handle, *bytes, &properties, 0);
    auto memory = std::make_unique<MappedMemory>(context_);
    ONEBIT_RETURN_IF_ERROR(memory->map(handle, device_, *bytes));
    memory->address = memory->base();
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> CudaDevice::import_fd(hrx_fd_kind, int fd, uint64_t allocation_size, uint64_t offset,
                                                      uint64_t size) {
    const ContextScope scope(context_);
    auto external = import_external(context_, fd, allocation_size, offset, size);
    if (external.ok() || external.error().code == ErrorCode::cancelled) return external;
    auto shareable = import_shareable(context_, device_, fd, allocation_size, offset, size);
    if (shareable.ok()) return shareable;
    Error both = external.error();
    both.found += "; " + shareable.error().message();
    return both;
}

Result<std::unique_ptr<Memory>> CudaDevice::import_host(void* pointer, uint64_t size) {
    const ContextScope scope(context_);
    auto memory = std::make_unique<RegisteredMemory>(context_);
    ONEBIT_HRX_CUDA(cuMemHostRegister, pointer, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    memory->host = pointer;
    CUdeviceptr address = 0;
    ONEBIT_HRX_CUDA(cuMemHostGetDevicePointer, &address, pointer, 0);
    memory->address = address;
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<ExportedMemory> CudaDevice::export_fd(const Memory& memory, hrx_fd_kind kind) {
    const ContextScope scope(context_);
    const auto* mapped = dynamic_cast<const MappedMemory*>(&memory);
    if (mapped == nullptr) return Error{ErrorCode::internal, "export", "memory allocated for export", "other", ""};
    int fd = -1;
    if (kind == HRX_FD_OPAQUE) {
        ONEBIT_HRX_CUDA(cuMemExportToShareableHandle, &fd, mapped->handle(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                        0);
    } else {
        ONEBIT_HRX_CUDA(cuMemGetHandleForAddressRange, &fd, mapped->base(), mapped->bytes(),
                        CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    }
    return ExportedMemory{UniqueFd(fd), mapped->bytes(), memory.address - mapped->base()};
}

Result<void> CudaDevice::write(const Memory& memory, uint64_t offset, const void* data, uint64_t size) {
    const std::lock_guard lock(copy_mutex_);
    const ContextScope scope(context_);
    // a synchronous copy may return before the device has it, and our streams do not wait for it
    ONEBIT_HRX_CUDA(cuMemcpyHtoDAsync, memory.address + offset, data, size, copy_stream_);
    ONEBIT_HRX_CUDA(cuStreamSynchronize, copy_stream_);
    return {};
}

Result<void> CudaDevice::read(const Memory& memory, uint64_t offset, void* data, uint64_t size) {
    const std::lock_guard lock(copy_mutex_);
    const ContextScope scope(context_);
    ONEBIT_HRX_CUDA(cuMemcpyDtoHAsync, data, memory.address + offset, size, copy_stream_);
    ONEBIT_HRX_CUDA(cuStreamSynchronize, copy_stream_);
    return {};
}

}  // namespace onebit::hrx::runtime::cuda
