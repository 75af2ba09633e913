// One AMD GPU by its HSA agent.
#pragma once

#include <memory>
#include <mutex>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/drivers/amdgpu/libhsa.h"
#include "hrx/runtime/drivers/amdgpu/signals.h"

namespace onebit::hrx::runtime::amdgpu {

struct Pool {
    hsa_amd_memory_pool_t handle{};
    size_t bytes = 0, largest = 0, granule = 4096;
};

// Memory of a pool, freed with the object.
class PoolMemory final : public Memory {
public:
    static Result<std::unique_ptr<PoolMemory>> allocate(const Pool& pool, uint64_t size,
                                                        std::span<const hsa_agent_t> access);
    ~PoolMemory() override {
        if (pointer != nullptr) api().hsa_amd_memory_pool_free(pointer);
    }
    void* pointer = nullptr;
};

class AmdgpuDevice final : public DriverDevice {
public:
    static Result<std::unique_ptr<DriverDevice>> open(uint32_t index);
    explicit AmdgpuDevice(hsa_agent_t agent) : agent_(agent) {}

    const hrx_device_info& info() const override { return info_; }
    uint64_t ticks_per_second() const override { return ticks_per_second_; }
    std::string builtin_target() const override { return info_.architecture; }

    Result<uint64_t> free_memory() override;
    Result<std::unique_ptr<Memory>> allocate(hrx_memory kind, bool exportable, uint64_t size) override;
    Result<std::unique_ptr<Memory>> import_fd(hrx_fd_kind kind, int fd, uint64_t allocation_size, uint64_t offset,
                                              uint64_t size) override;
    Result<std::unique_ptr<Memory>> import_host(void* pointer, uint64_t size) override;
    Result<ExportedMemory> export_fd(const Memory& memory, hrx_fd_kind kind) override;
    Result<void> write(const Memory& memory, uint64_t offset, const void* data, uint64_t size) override;
    Result<void> read(const Memory& memory, uint64_t offset, void* data, uint64_t size) override;
    Result<std::unique_ptr<Image>> load(std::span<const std::byte> image) override;
    Result<std::unique_ptr<Recording>> record(std::span<const Launch> launches, size_t argument_bytes) override;
    Result<std::unique_ptr<Channel>> create_channel() override;

private:
    Result<void> start();
    Result<void> find_pools();
    Result<void> read_info();
    bool host_reaches_device_pool() const;
    Result<PoolMemory*> staging();

    const hsa_agent_t agent_;
    hrx_device_info info_{};
    uint64_t ticks_per_second_ = 0;
    Pool device_pool_, host_pool_, argument_pool_;
    uint32_t lds_bytes_ = 0;
    std::shared_ptr<SignalPool> signals_ = std::make_shared<SignalPool>();
    std::mutex staging_mutex_;
    std::unique_ptr<PoolMemory> staging_;
};

}  // namespace onebit::hrx::runtime::amdgpu
