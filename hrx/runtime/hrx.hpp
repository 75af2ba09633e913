// C++ form of hrx.h: owners for handles, Result for hrx_result. Header only. Everything hrx.h says of threads,
// lifetimes and units holds; an object that was moved from holds nothing and must not be used.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hrx/runtime/hrx.h"

namespace onebit::hrx {

// The error of a failed call, with the message of this thread's last failure.
inline Error to_error(hrx_result result) {
    ErrorCode code = ErrorCode::internal;
    switch (result) {
        case HRX_INVALID_ARGUMENT:
            code = ErrorCode::usage;
            break;
        case HRX_NOT_FOUND:
            code = ErrorCode::not_found;
            break;
        case HRX_UNSUPPORTED:
            code = ErrorCode::unsupported;
            break;
        case HRX_OUT_OF_MEMORY:
            code = ErrorCode::no_space;
            break;
        case HRX_UNAVAILABLE:
            code = ErrorCode::unavailable;
            break;
        case HRX_TIMEOUT:
            code = ErrorCode::timeout;
            break;
        case HRX_DEVICE_LOST:
            code = ErrorCode::cancelled;
            break;
        case HRX_DRIVER_ERROR:
            code = ErrorCode::io;
            break;
        case HRX_WRONG_STATE:
            code = ErrorCode::conflict;
            break;
        case HRX_INVALID_DATA:
            code = ErrorCode::invalid;
            break;
        case HRX_OK:
        case HRX_INTERNAL:
            break;
    }
    return Error{code, hrx_error_message(), "", "", ""};
}

inline Result<void> to_result(hrx_result result) {
    if (result == HRX_OK) return {};
    return to_error(result);
}

// Owns one count of a handle.
template <typename T, void (*retain)(T*), void (*release)(T*)>
class Handle {
public:
    Handle() = default;
    // Takes over a count that the caller has.
    explicit Handle(T* handle) : handle_(handle) {}
    Handle(const Handle& other) : handle_(other.handle_) { retain(handle_); }
    Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle& operator=(Handle other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Handle() { release(handle_); }
    T* get() const { return handle_; }
    explicit operator bool() const { return handle_ != nullptr; }

private:
    T* handle_ = nullptr;
};

class Buffer : public Handle<hrx_buffer, hrx_buffer_retain, hrx_buffer_release> {
public:
    using Handle::Handle;
    uint64_t size() const { return hrx_buffer_size(get()); }
    uint64_t address() const { return hrx_buffer_address(get()); }
    Result<std::span<std::byte>> map() const {
        void* pointer = nullptr;
        if (const hrx_result result = hrx_buffer_map(get(), &pointer); result != HRX_OK) return to_error(result);
        return std::span(static_cast<std::byte*>(pointer), size());
    }
    template <typename T, size_t Extent>
    Result<void> write(std::span<T, Extent> data, uint64_t offset = 0) const {
        return to_result(hrx_buffer_write(get(), offset, data.data(), data.size_bytes()));
    }
    template <typename T>
    Result<std::vector<T>> read(size_t count, uint64_t offset = 0) const {
        std::vector<T> data(count);
        const hrx_result result = hrx_buffer_read(get(), offset, data.data(), count * sizeof(T));
        if (result != HRX_OK) return to_error(result);
        return data;
    }
    struct Exported {
        UniqueFd fd;
        uint64_t allocation_size = 0, offset = 0;
    };
    Result<Exported> export_fd(hrx_fd_kind kind) const {
        int fd = -1;
        Exported exported;
        const hrx_result result = hrx_buffer_export_fd(get(), kind, &fd, &exported.allocation_size, &exported.offset);
        if (result != HRX_OK) return to_error(result);
        exported.fd.reset(fd);
        return exported;
    }
};

class Executable : public Handle<hrx_executable, hrx_executable_retain, hrx_executable_release> {
public:
    using Handle::Handle;
    Result<uint32_t> find(const char* kernel) const {
        uint32_t index = 0;
        if (const hrx_result result = hrx_executable_find(get(), kernel, &index); result != HRX_OK) {
            return to_error(result);
        }
        return index;
    }
    Result<hrx_kernel_info> kernel_info(uint32_t index) const {
        hrx_kernel_info info{};
        const hrx_result result = hrx_executable_kernel_info(get(), index, &info);
        if (result != HRX_OK) return to_error(result);
        return info;
    }
};

class Semaphore : public Handle<hrx_semaphore, hrx_semaphore_retain, hrx_semaphore_release> {
public:
    using Handle::Handle;
    Result<uint64_t> query() const {
        uint64_t value = 0;
        if (const hrx_result result = hrx_semaphore_query(get(), &value); result != HRX_OK) return to_error(result);
        return value;
    }
    Result<void> signal(uint64_t value) const { return to_result(hrx_semaphore_signal(get(), value)); }
    Result<void> wait(uint64_t value, uint64_t timeout = UINT64_MAX) const {
        return to_result(hrx_semaphore_wait(get(), value, timeout));
    }
};

inline hrx_binding bind(const Buffer& buffer, uint64_t offset = 0, uint64_t length = 0) {
    return {buffer.get(), offset, length};
}

class Program : public Handle<hrx_program, hrx_program_retain, hrx_program_release> {
public:
    using Handle::Handle;
    Result<uint32_t> dispatch(const hrx_dispatch& dispatch) const {
        return indexed([&](uint32_t* index) { return hrx_program_dispatch(get(), &dispatch, index); });
    }
    Result<uint32_t> copy(const Buffer& destination, uint64_t destination_offset, const Buffer& source,
                          uint64_t source_offset, uint64_t size) const {
        return indexed([&](uint32_t* index) {
            return hrx_program_copy(get(), destination.get(), destination_offset, source.get(), source_offset, size,
                                    index);
        });
    }
    Result<uint32_t> fill(const Buffer& destination, uint64_t offset, uint64_t size, uint32_t pattern,
                          uint32_t pattern_size = 4) const {
        return indexed([&](uint32_t* index) {
            return hrx_program_fill(get(), destination.get(), offset, size, pattern, pattern_size, index);
        });
    }
    Result<void> barrier() const { return to_result(hrx_program_barrier(get())); }
    Result<uint32_t> timestamp() const {
        return indexed([&](uint32_t* slot) { return hrx_program_timestamp(get(), slot); });
    }
    Result<void> finish() const { return to_result(hrx_program_finish(get())); }
    Result<void> patch(std::span<const hrx_patch> patches) const {
        return to_result(hrx_program_patch(get(), patches.data(), static_cast<uint32_t>(patches.size())));
    }
    template <typename T>
    Result<void> patch_constant(uint32_t command, uint32_t offset, const T& value) const {
        return to_result(hrx_program_patch_constants(get(), command, offset, &value, sizeof value));
    }
    Result<std::vector<uint64_t>> timestamps(uint32_t count) const {
        std::vector<uint64_t> times(count);
        const hrx_result result = hrx_program_timestamps(get(), times.data(), count);
        if (result != HRX_OK) return to_error(result);
        return times;
    }
    Result<std::vector<hrx_profile_entry>> profile() const {
        std::vector<hrx_profile_entry> entries(hrx_program_command_count(get()));
        const hrx_result result = hrx_program_profile(get(), entries.data(), static_cast<uint32_t>(entries.size()));
        if (result != HRX_OK) return to_error(result);
        return entries;
    }

private:
    template <typename Call>
    static Result<uint32_t> indexed(Call&& call) {
        uint32_t index = 0;
        if (const hrx_result result = call(&index); result != HRX_OK) return to_error(result);
        return index;
    }
};

inline hrx_semaphore_value at(const Semaphore& semaphore, uint64_t value) { return {semaphore.get(), value}; }

class Queue : public Handle<hrx_queue, hrx_queue_retain, hrx_queue_release> {
public:
    using Handle::Handle;
    Result<void> submit(const Program& program, std::span<const hrx_semaphore_value> waits = {},
                        std::span<const hrx_semaphore_value> signals = {}) const {
        return to_result(hrx_queue_submit(get(), program.get(), waits.data(), static_cast<uint32_t>(waits.size()),
                                          signals.data(), static_cast<uint32_t>(signals.size())));
    }
    Result<void> wait_idle(uint64_t timeout = UINT64_MAX) const {
        return to_result(hrx_queue_wait_idle(get(), timeout));
    }
};

class Device : public Handle<hrx_device, hrx_device_retain, hrx_device_release> {
public:
    using Handle::Handle;
    static Result<uint32_t> count(const char* driver) {
        uint32_t count = 0;
        if (const hrx_result result = hrx_device_count(driver, &count); result != HRX_OK) return to_error(result);
        return count;
    }
    static Result<Device> open(const char* driver, uint32_t index) {
        return made<Device, hrx_device>([&](hrx_device** device) { return hrx_device_open(driver, index, device); });
    }
    Result<hrx_device_info> info() const {
        hrx_device_info info{};
        if (const hrx_result result = hrx_device_get_info(get(), &info); result != HRX_OK) return to_error(result);
        return info;
    }
    Result<Buffer> allocate(uint64_t size, hrx_memory memory = HRX_MEMORY_DEVICE, uint32_t flags = 0) const {
        return made<Buffer, hrx_buffer>(
            [&](hrx_buffer** buffer) { return hrx_buffer_allocate(get(), memory, flags, size, buffer); });
    }
    // fd stays the caller's.
    Result<Buffer> import_fd(hrx_fd_kind kind, int fd, uint64_t allocation_size, uint64_t offset, uint64_t size) const {
        return made<Buffer, hrx_buffer>([&](hrx_buffer** buffer) {
            return hrx_buffer_import_fd(get(), kind, fd, allocation_size, offset, size, buffer);
        });
    }
    Result<Buffer> import_host(void* pointer, uint64_t size) const {
        return made<Buffer, hrx_buffer>(
            [&](hrx_buffer** buffer) { return hrx_buffer_import_host(get(), pointer, size, buffer); });
    }
    Result<Executable> load(std::span<const std::byte> image) const {
        return made<Executable, hrx_executable>([&](hrx_executable** executable) {
            return hrx_executable_load(get(), image.data(), image.size(), executable);
        });
    }
    Result<Program> create_program(uint32_t flags = 0) const {
        return made<Program, hrx_program>(
            [&](hrx_program** program) { return hrx_program_create(get(), flags, program); });
    }
    Result<Queue> create_queue() const {
        return made<Queue, hrx_queue>([&](hrx_queue** queue) { return hrx_queue_create(get(), queue); });
    }
    Result<Semaphore> create_semaphore(uint64_t initial_value = 0) const {
        return made<Semaphore, hrx_semaphore>(
            [&](hrx_semaphore** semaphore) { return hrx_semaphore_create(get(), initial_value, semaphore); });
    }

private:
    template <typename Object, typename T, typename Call>
    static Result<Object> made(Call&& call) {
        T* handle = nullptr;
        if (const hrx_result result = call(&handle); result != HRX_OK) return to_error(result);
        return Object(handle);
    }
};

}  // namespace onebit::hrx
