// Memory of an AMD GPU: pools of its agent and of the CPU, dma-buf export and import, pinned pages of the process.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "hrx/runtime/drivers/amdgpu/amdgpu_device.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

constexpr uint64_t staging_bytes = 1 << 20;

class LockedMemory final : public Memory {
public:
    ~LockedMemory() override {
        if (host != nullptr) api().hsa_amd_memory_unlock(host);
    }
};

class InteropMemory final : public Memory {
public:
    ~InteropMemory() override {
        if (base != nullptr) api().hsa_amd_interop_unmap_buffer(base);
    }
    void* base = nullptr;
};

}  // namespace

Result<std::unique_ptr<PoolMemory>> PoolMemory::allocate(const Pool& pool, uint64_t size,
                                                         std::span<const hsa_agent_t> access) {
    if (size > SIZE_MAX - pool.granule) {
        return Error{ErrorCode::no_space, "hsa_amd_memory_pool_allocate", "a size that can be", number(size), ""};
    }
    const uint64_t bytes = (size + pool.granule - 1) / pool.granule * pool.granule;
    auto memory = std::make_unique<PoolMemory>();
    ONEBIT_HRX_HSA(hsa_amd_memory_pool_allocate, pool.handle, bytes, 0, &memory->pointer);
    ONEBIT_HRX_HSA(hsa_amd_agents_allow_access, static_cast<uint32_t>(access.size()), access.data(), nullptr,
                   memory->pointer);
    memory->address = reinterpret_cast<uint64_t>(memory->pointer);
    memory->size = size;
    return memory;
}

Result<std::unique_ptr<Memory>> AmdgpuDevice::allocate(hrx_memory kind, bool, uint64_t size) {
    // every allocation of a pool can be exported
    const bool mappable = kind == HRX_MEMORY_HOST || (info_.features & HRX_FEATURE_DEVICE_MEMORY_MAPPABLE) != 0;
    const hsa_agent_t access[] = {agent_, cpu_agents().front()};
    auto memory = PoolMemory::allocate(kind == HRX_MEMORY_HOST ? host_pool_ : device_pool_, size,
                                       std::span(access, mappable ? 2 : 1));
    if (!memory.ok()) return std::move(memory).error();
    if (mappable) (*memory)->host = (*memory)->pointer;
    return std::unique_ptr<Memory>(std::move(*memory));
}

Result<std::unique_ptr<Memory>> AmdgpuDevice::import_fd(hrx_fd_kind, int fd, uint64_t, uint64_t offset, uint64_t size) {
    auto memory = std::make_unique<InteropMemory>();
    hsa_agent_t agent = agent_;
    size_t mapped = 0, metadata_bytes = 0;
    const void* metadata = nullptr;
    ONEBIT_HRX_HSA(hsa_amd_interop_map_buffer, 1, &agent, fd, 0, &mapped, &memory->base, &metadata_bytes, &metadata);
    if (offset > mapped || size > mapped - offset) {
        return Error{ErrorCode::invalid, "dma-buf to import", "at least " + number(offset + size) + " bytes",
                     number(mapped), ""};
    }
    memory->address = reinterpret_cast<uint64_t>(memory->base) + offset;
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> AmdgpuDevice::import_host(void* pointer, uint64_t size) {
    auto memory = std::make_unique<LockedMemory>();
    hsa_agent_t agent = agent_;
    void* address = nullptr;
    ONEBIT_HRX_HSA(hsa_amd_memory_lock, pointer, size, &agent, 1, &address);
    memory->host = pointer;
    memory->address = reinterpret_cast<uint64_t>(address);
    memory->size = size;
    return std::unique_ptr<Memory>(std::move(memory));
}

Result<ExportedMemory> AmdgpuDevice::export_fd(const Memory& memory, hrx_fd_kind) {
    int fd = -1;
    uint64_t offset = 0;
    ONEBIT_HRX_HSA(hsa_amd_portable_export_dmabuf, std::bit_cast<const void*>(memory.address), memory.size, &fd,
                   &offset);
    UniqueFd own(fd);
    // a dma-buf tells its size by its end
    const off_t end = lseek(own.get(), 0, SEEK_END);
    if (end < 0) return error_from_errno(errno, "size of an exported dma-buf");
    return ExportedMemory{std::move(own), static_cast<uint64_t>(end), offset};
}

Result<PoolMemory*> AmdgpuDevice::staging() {
    if (staging_ == nullptr) {
        const hsa_agent_t access[] = {agent_, cpu_agents().front()};
        auto memory = PoolMemory::allocate(host_pool_, staging_bytes, access);
        if (!memory.ok()) return std::move(memory).error();
        staging_ = std::move(*memory);
    }
    return staging_.get();
}

Result<void> AmdgpuDevice::write(const Memory& memory, uint64_t offset, const void* data, uint64_t size) {
    const std::lock_guard lock(staging_mutex_);
    const auto buffer = staging();
    if (!buffer.ok()) return buffer.error();
    for (uint64_t done = 0; done < size;) {
        const uint64_t part = std::min(staging_bytes, size - done);
        std::memcpy((*buffer)->pointer, static_cast<const std::byte*>(data) + done, part);
        ONEBIT_HRX_HSA(hsa_memory_copy, std::bit_cast<void*>(memory.address + offset + done), (*buffer)->pointer, part);
        done += part;
    }
    return {};
}

Result<void> AmdgpuDevice::read(const Memory& memory, uint64_t offset, void* data, uint64_t size) {
    const std::lock_guard lock(staging_mutex_);
    const auto buffer = staging();
    if (!buffer.ok()) return buffer.error();
    for (uint64_t done = 0; done < size;) {
        const uint64_t part = std::min(staging_bytes, size - done);
        ONEBIT_HRX_HSA(hsa_memory_copy, (*buffer)->pointer, std::bit_cast<const void*>(memory.address + offset + done),
                       part);
        std::memcpy(static_cast<std::byte*>(data) + done, (*buffer)->pointer, part);
        done += part;
    }
    return {};
}

}  // namespace onebit::hrx::runtime::amdgpu
