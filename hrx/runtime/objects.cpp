#include "hrx/runtime/objects.h"

#include <cstring>

#include "hrx/runtime/builtin_images.h"
#include "hrx/runtime/drivers.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime {

Result<Ref<Device>> Device::open(const std::string& driver, uint32_t index) {
    const auto started = started_driver(driver);
    if (!started.ok()) return started.error();
    const auto count = (*started)->device_count();
    if (!count.ok()) return count.error();
    if (index >= *count) {
        return Error{ErrorCode::not_found, "device " + number(index) + " of driver " + driver,
                     "an index below " + number(*count), number(index), ""};
    }
    auto device = (*started)->open(index);
    if (!device.ok()) return std::move(device).error();
    return Ref<Device>::adopt(new Device(std::move(*device)));
}

Device::Device(std::unique_ptr<DriverDevice> driver) : driver_(std::move(driver)), info_(driver_->info()) {}

Result<const Kernel*> Device::builtin(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = builtin_kernels_.find(name); found != builtin_kernels_.end()) return &found->second;
    if (builtin_image_ == nullptr) {
        const std::string target = driver_->builtin_target();
        const auto image = builtin_image(target);
        if (image.empty()) {
            return Error{ErrorCode::unsupported, "built-in kernels of libhrx", "an image for " + target,
                         "images for " + builtin_targets(),
                         "build with clang 19, and " + target + " among its targets"};
        }
        auto loaded = driver_->load(image);
        if (!loaded.ok()) return std::move(loaded).error();
        builtin_image_ = std::move(*loaded);
    }
    auto kernel = builtin_image_->find(name);
    if (!kernel.ok()) return std::move(kernel).error();
    return &builtin_kernels_.emplace(name, std::move(*kernel)).first->second;
}

// ---- buffers ----

namespace {

Result<void> check_feature(const Device& device, uint32_t feature, const char* what) {
    if ((device.info().features & feature) != 0) return {};
    return Error{ErrorCode::unsupported, std::string(what) + " on " + device.info().name, "a device that can",
                 "driver " + std::string(device.info().driver) + " cannot", ""};
}

uint32_t import_feature(hrx_fd_kind kind) {
    return kind == HRX_FD_DMA_BUF ? HRX_FEATURE_IMPORT_DMA_BUF : HRX_FEATURE_IMPORT_OPAQUE;
}
uint32_t export_feature(hrx_fd_kind kind) {
    return kind == HRX_FD_DMA_BUF ? HRX_FEATURE_EXPORT_DMA_BUF : HRX_FEATURE_EXPORT_OPAQUE;
}

Result<void> check_kind(hrx_fd_kind kind) {
    if (kind == HRX_FD_DMA_BUF || kind == HRX_FD_OPAQUE) return {};
    return invalid_argument("kind of file descriptor", "HRX_FD_DMA_BUF or HRX_FD_OPAQUE", number(kind));
}

Result<void> check_size(uint64_t size) {
    if (size != 0) return {};
    return invalid_argument("size of a buffer", "at least 1 byte", "0");
}

Result<Ref<Buffer>> wrap(Device& device, Result<std::unique_ptr<Memory>> memory, bool exportable) {
    if (!memory.ok()) return std::move(memory).error();
    return Ref<Buffer>::adopt(new Buffer(device, std::move(*memory), exportable));
}

}  // namespace

Result<Ref<Buffer>> Buffer::allocate(Device& device, hrx_memory kind, uint32_t flags, uint64_t size) {
    ONEBIT_RETURN_IF_ERROR(check_size(size));
    if (kind != HRX_MEMORY_DEVICE && kind != HRX_MEMORY_HOST) {
        return invalid_argument("kind of memory", "HRX_MEMORY_DEVICE or HRX_MEMORY_HOST", number(kind));
    }
    if ((flags & ~uint32_t{HRX_BUFFER_EXPORTABLE}) != 0) {
        return invalid_argument("flags of a buffer", "bits of hrx_buffer_flag", hexadecimal(flags));
    }
    const bool exportable = (flags & HRX_BUFFER_EXPORTABLE) != 0;
    if (exportable && kind == HRX_MEMORY_HOST) {
        return Error{ErrorCode::unsupported, "HRX_BUFFER_EXPORTABLE", "HRX_MEMORY_DEVICE", "HRX_MEMORY_HOST",
                     "share host memory with hrx_buffer_import_host"};
    }
    if (exportable) {
        ONEBIT_RETURN_IF_ERROR(
            check_feature(device, HRX_FEATURE_EXPORT_DMA_BUF | HRX_FEATURE_EXPORT_OPAQUE, "exportable memory"));
    }
    if (size > device.info().max_buffer_bytes) {
        return Error{ErrorCode::no_space, "buffer of " + number(size) + " bytes",
                     "at most " + number(device.info().max_buffer_bytes) + " on " + device.info().name, number(size),
                     ""};
    }
    return wrap(device, device.driver().allocate(kind, exportable, size), exportable);
}

Result<Ref<Buffer>> Buffer::import_fd(Device& device, hrx_fd_kind kind, int fd, uint64_t allocation_size,
                                      uint64_t offset, uint64_t size) {
    ONEBIT_RETURN_IF_ERROR(check_kind(kind));
    ONEBIT_RETURN_IF_ERROR(check_size(size));
    if (fd < 0) return invalid_argument("file descriptor to import", "0 or above", std::to_string(fd));
    if (offset > allocation_size || size > allocation_size - offset) {
        return invalid_argument("range to import", "offset + size of at most " + number(allocation_size),
                                "offset " + number(offset) + ", size " + number(size));
    }
    ONEBIT_RETURN_IF_ERROR(check_feature(device, import_feature(kind), "import of this kind of file descriptor"));
    return wrap(device, device.driver().import_fd(kind, fd, allocation_size, offset, size), false);
}

Result<Ref<Buffer>> Buffer::import_host(Device& device, void* pointer, uint64_t size) {
    ONEBIT_RETURN_IF_ERROR(check_size(size));
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (pointer == nullptr || address % 4096 != 0) {
        return invalid_argument("pointer to import", "a multiple of 4096", hexadecimal(address));
    }
    if (size > UINTPTR_MAX - address) {
        return invalid_argument("size to import", "an end within the address space", number(size));
    }
    ONEBIT_RETURN_IF_ERROR(check_feature(device, HRX_FEATURE_IMPORT_HOST, "import of host memory"));
    return wrap(device, device.driver().import_host(pointer, size), false);
}

Result<ExportedMemory> Buffer::export_fd(hrx_fd_kind kind) const {
    ONEBIT_RETURN_IF_ERROR(check_kind(kind));
    if (!exportable_) {
        return Error{ErrorCode::unsupported, "export of a buffer", "one allocated with HRX_BUFFER_EXPORTABLE",
                     "one without", ""};
    }
    ONEBIT_RETURN_IF_ERROR(check_feature(*device_, export_feature(kind), "export of this kind of file descriptor"));
    return device_->driver().export_fd(*memory_, kind);
}

Result<void*> Buffer::map() const {
    if (memory_->host != nullptr) return memory_->host;
    return Error{ErrorCode::unsupported, "map of a buffer", "memory that the host can reach",
                 "device memory of " + std::string(device_->info().name), "use HRX_MEMORY_HOST and a copy"};
}

Result<void> Buffer::check_range(const char* what, uint64_t offset, uint64_t size) const {
    if (offset <= memory_->size && size <= memory_->size - offset) return {};
    return invalid_argument(what, "a range within " + number(memory_->size) + " bytes",
                            "offset " + number(offset) + ", size " + number(size));
}

Result<void> Buffer::write(uint64_t offset, const void* data, uint64_t size) {
    ONEBIT_RETURN_IF_ERROR(check_range("hrx_buffer_write", offset, size));
    if (size == 0) return {};
    if (data == nullptr) return invalid_argument("hrx_buffer_write", "a pointer to the data", "NULL");
    if (memory_->host == nullptr) return device_->driver().write(*memory_, offset, data, size);
    std::memcpy(static_cast<std::byte*>(memory_->host) + offset, data, size);
    return {};
}

Result<void> Buffer::read(uint64_t offset, void* data, uint64_t size) {
    ONEBIT_RETURN_IF_ERROR(check_range("hrx_buffer_read", offset, size));
    if (size == 0) return {};
    if (data == nullptr) return invalid_argument("hrx_buffer_read", "a pointer for the data", "NULL");
    if (memory_->host == nullptr) return device_->driver().read(*memory_, offset, data, size);
    std::memcpy(data, static_cast<const std::byte*>(memory_->host) + offset, size);
    return {};
}

// ---- executables ----

Result<Ref<Executable>> Executable::load(Device& device, std::span<const std::byte> image) {
    if (image.data() == nullptr || image.empty()) {
        return invalid_argument("image of an executable", "at least 1 byte", "none");
    }
    auto loaded = device.driver().load(image);
    if (!loaded.ok()) return std::move(loaded).error();
    return Ref<Executable>::adopt(new Executable(device, std::move(*loaded)));
}

Result<uint32_t> Executable::find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < kernels_.size(); ++i) {
        if (kernels_[i].name == name) return static_cast<uint32_t>(i);
    }
    auto kernel = image_->find(name);
    if (!kernel.ok()) return std::move(kernel).error();
    kernels_.push_back(std::move(*kernel));
    return static_cast<uint32_t>(kernels_.size() - 1);
}

Result<const Kernel*> Executable::kernel(uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (index < kernels_.size()) return &kernels_[index];
    return invalid_argument("index of a kernel", "one that hrx_executable_find returned", number(index));
}

}  // namespace onebit::hrx::runtime
