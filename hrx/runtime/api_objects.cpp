// The C functions for drivers, devices, buffers and executables.
#include "hrx/runtime/drivers.h"
#include "hrx/runtime/handles.h"

using namespace onebit;
using namespace onebit::hrx::runtime;

uint32_t hrx_version(void) { return HRX_VERSION; }

uint32_t hrx_driver_count(void) { return driver_count(); }
const char* hrx_driver_name(uint32_t index) { return driver_name(index); }

hrx_result hrx_driver_probe(const char* driver, hrx_probe_callback callback, void* user) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(driver, "driver"));
        auto found = start_driver(driver);
        if (!found.ok()) return std::move(found).error();
        for (const ProbeEntry& tried : *found->tried) {
            const hrx_probe_entry entry{found->driver->name(), tried.origin.c_str(), tried.library.c_str(),
                                        tried.call.c_str(),    tried.detail.c_str(), tried.started};
            if (callback != nullptr) callback(user, &entry);
        }
        return found->started;
    });
}

hrx_result hrx_device_count(const char* driver, uint32_t* count) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(driver, "driver"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(count, "count"));
        const auto started = started_driver(driver);
        if (!started.ok()) return started.error();
        return give_value((*started)->device_count(), count);
    });
}

hrx_result hrx_device_open(const char* driver, uint32_t index, hrx_device** device) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(driver, "driver"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        return give(Device::open(driver, index), device);
    });
}

void hrx_device_retain(hrx_device* device) {
    if (device != nullptr) object(device)->retain();
}
void hrx_device_release(hrx_device* device) {
    if (device != nullptr) object(device)->release();
}

hrx_result hrx_device_get_info(const hrx_device* device, hrx_device_info* info) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(info, "info"));
        *info = object(device)->info();
        return {};
    });
}

hrx_result hrx_device_free_memory(const hrx_device* device, uint64_t* bytes) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(bytes, "bytes"));
        return give_value(object(device)->driver().free_memory(), bytes);
    });
}

// ---- buffers ----

hrx_result hrx_buffer_allocate(hrx_device* device, hrx_memory memory, uint32_t flags, uint64_t size,
                               hrx_buffer** buffer) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        return give(Buffer::allocate(*object(device), memory, flags, size), buffer);
    });
}

hrx_result hrx_buffer_import_fd(hrx_device* device, hrx_fd_kind kind, int fd, uint64_t allocation_size, uint64_t offset,
                                uint64_t size, hrx_buffer** buffer) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        return give(Buffer::import_fd(*object(device), kind, fd, allocation_size, offset, size), buffer);
    });
}

hrx_result hrx_buffer_import_host(hrx_device* device, void* pointer, uint64_t size, hrx_buffer** buffer) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        return give(Buffer::import_host(*object(device), pointer, size), buffer);
    });
}

hrx_result hrx_buffer_export_fd(hrx_buffer* buffer, hrx_fd_kind kind, int* fd, uint64_t* allocation_size,
                                uint64_t* offset) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(fd, "fd"));
        auto exported = object(buffer)->export_fd(kind);
        if (!exported.ok()) return std::move(exported).error();
        if (allocation_size != nullptr) *allocation_size = exported->allocation_size;
        if (offset != nullptr) *offset = exported->offset;
        *fd = exported->fd.release();
        return {};
    });
}

void hrx_buffer_retain(hrx_buffer* buffer) {
    if (buffer != nullptr) object(buffer)->retain();
}
void hrx_buffer_release(hrx_buffer* buffer) {
    if (buffer != nullptr) object(buffer)->release();
}
uint64_t hrx_buffer_size(const hrx_buffer* buffer) { return buffer == nullptr ? 0 : object(buffer)->size(); }
uint64_t hrx_buffer_address(const hrx_buffer* buffer) { return buffer == nullptr ? 0 : object(buffer)->address(); }

hrx_result hrx_buffer_map(hrx_buffer* buffer, void** pointer) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(pointer, "pointer"));
        return give_value(object(buffer)->map(), pointer);
    });
}

hrx_result hrx_buffer_write(hrx_buffer* buffer, uint64_t offset, const void* data, uint64_t size) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        return object(buffer)->write(offset, data, size);
    });
}

hrx_result hrx_buffer_read(hrx_buffer* buffer, uint64_t offset, void* data, uint64_t size) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(buffer, "buffer"));
        return object(buffer)->read(offset, data, size);
    });
}

// ---- executables ----

hrx_result hrx_executable_load(hrx_device* device, const void* image, uint64_t size, hrx_executable** executable) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(executable, "executable"));
        return give(Executable::load(*object(device), {static_cast<const std::byte*>(image), size}), executable);
    });
}

void hrx_executable_retain(hrx_executable* executable) {
    if (executable != nullptr) object(executable)->retain();
}
void hrx_executable_release(hrx_executable* executable) {
    if (executable != nullptr) object(executable)->release();
}

hrx_result hrx_executable_find(hrx_executable* executable, const char* kernel, uint32_t* index) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(executable, "executable"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(kernel, "kernel"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(index, "index"));
        return give_value(object(executable)->find(kernel), index);
    });
}

hrx_result hrx_executable_kernel_info(hrx_executable* executable, uint32_t index, hrx_kernel_info* info) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(executable, "executable"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(info, "info"));
        const auto kernel = object(executable)->kernel(index);
        if (!kernel.ok()) return kernel.error();
        *info = (*kernel)->info;
        return {};
    });
}
