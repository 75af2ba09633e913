// One CUDA device by its primary context, which other CUDA code of the process shares: a context of our own would cost
// a context switch for each hand-off.
#pragma once

#include <memory>
#include <mutex>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/drivers/cuda/events.h"
#include "hrx/runtime/drivers/cuda/libcuda.h"

namespace onebit::hrx::runtime::cuda {

class CudaDevice final : public DriverDevice {
public:
    static Result<std::unique_ptr<DriverDevice>> open(uint32_t index);
    explicit CudaDevice(CUdevice device) : device_(device) {}
    ~CudaDevice() override;

    const hrx_device_info& info() const override { return info_; }
    uint64_t ticks_per_second() const override { return 1'000'000'000; }  // of PTX's %globaltimer
    std::string builtin_target() const override { return "sm_80"; }       // PTX, which later chips take as well

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
    Result<void> read_info();
    Result<std::unique_ptr<Memory>> allocate_exportable(uint64_t size);

    const CUdevice device_;
    CUcontext context_ = nullptr;
    hrx_device_info info_{};
    std::mutex copy_mutex_;
    CUstream copy_stream_ = nullptr;
    std::shared_ptr<EventPool> events_;  // shared with completions, which may outlive the channel
};

}  // namespace onebit::hrx::runtime::cuda
