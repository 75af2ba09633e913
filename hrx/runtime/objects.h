// The objects behind the handles for devices, buffers and executables.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/ref.h"
#include "hrx/runtime/timeline.h"

namespace onebit::hrx::runtime {

class Device final : public Counted {
public:
    static Result<Ref<Device>> open(const std::string& driver, uint32_t index);
    explicit Device(std::unique_ptr<DriverDevice> driver);

    DriverDevice& driver() const { return *driver_; }
    const hrx_device_info& info() const { return info_; }
    Timeline& timeline() { return timeline_; }

    // A kernel of hrx/kernels/runtime; loaded when first asked for. unsupported when the build has none for this
    // device. Safe from any thread; lives as long as the device.
    Result<const Kernel*> builtin(const std::string& name);

private:
    const std::unique_ptr<DriverDevice> driver_;
    const hrx_device_info info_;
    Timeline timeline_;
    std::mutex mutex_;
    std::unique_ptr<Image> builtin_image_;
    std::map<std::string, Kernel> builtin_kernels_;
};

class Buffer final : public Counted {
public:
    static Result<Ref<Buffer>> allocate(Device& device, hrx_memory kind, uint32_t flags, uint64_t size);
    static Result<Ref<Buffer>> import_fd(Device& device, hrx_fd_kind kind, int fd, uint64_t allocation_size,
                                         uint64_t offset, uint64_t size);
    static Result<Ref<Buffer>> import_host(Device& device, void* pointer, uint64_t size);
    Buffer(Device& device, std::unique_ptr<Memory> memory, bool exportable)
        : device_(Ref<Device>::share(&device)), memory_(std::move(memory)), exportable_(exportable) {}

    Device& device() const { return *device_; }
    const Memory& memory() const { return *memory_; }
    uint64_t size() const { return memory_->size; }
    uint64_t address() const { return memory_->address; }

    Result<ExportedMemory> export_fd(hrx_fd_kind kind) const;
    Result<void*> map() const;
    Result<void> write(uint64_t offset, const void* data, uint64_t size);
    Result<void> read(uint64_t offset, void* data, uint64_t size);
    // usage with the range named when it does not lie in the buffer.
    Result<void> check_range(const char* what, uint64_t offset, uint64_t size) const;

private:
    const Ref<Device> device_;  // before memory_: destroyed after it
    const std::unique_ptr<Memory> memory_;
    const bool exportable_;
};

class Executable final : public Counted {
public:
    static Result<Ref<Executable>> load(Device& device, std::span<const std::byte> image);
    Executable(Device& device, std::unique_ptr<Image> image)
        : device_(Ref<Device>::share(&device)), image_(std::move(image)) {}

    Device& device() const { return *device_; }
    Result<uint32_t> find(const std::string& name);
    // The kernel of an index that find returned; lives as long as the executable.
    Result<const Kernel*> kernel(uint32_t index);

private:
    const Ref<Device> device_;
    const std::unique_ptr<Image> image_;
    std::mutex mutex_;
    std::deque<Kernel> kernels_;  // addresses stay
};

}  // namespace onebit::hrx::runtime
