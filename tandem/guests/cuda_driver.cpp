#include "tandem/guests/cuda_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace onebit::tandem {
namespace {

constexpr int handle_type_opaque_fd =
    1;                                  // CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, hipExternalMemoryHandleTypeOpaqueFd
constexpr unsigned flag_dedicated = 1;  // CUDA_EXTERNAL_MEMORY_DEDICATED, hipExternalMemoryDedicated
void* const stream_per_thread = reinterpret_cast<void*>(uintptr_t{2});  // CU_STREAM_PER_THREAD, hipStreamPerThread

struct HandleDesc {  // CUDA_EXTERNAL_MEMORY_HANDLE_DESC
    int type = handle_type_opaque_fd;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle = {};
    unsigned long long size = 0;
    unsigned flags = flag_dedicated;
    unsigned reserved[16] = {};
};

struct BufferDesc {  // CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    unsigned long long offset = 0, size = 0;
    unsigned flags = 0;
    unsigned reserved[16] = {};
};

// One row a driver: the same calls under two names.
struct Calls {
    int (*init)(unsigned) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*get_uuid)(void*, int) = nullptr;
    int (*import_memory)(void**, const HandleDesc*) = nullptr;
    int (*mapped_buffer)(uint64_t*, void*, const BufferDesc*) = nullptr;
    int (*destroy_memory)(void*) = nullptr;
    int (*free_buffer)(uint64_t) = nullptr;
    int (*to_device)(uint64_t, const void*, size_t, void*) = nullptr;
    int (*to_host)(void*, uint64_t, size_t, void*) = nullptr;
    int (*stream_synchronize)(void*) = nullptr;
    // CUDA: contexts are pushed and popped
    int (*retain)(void**, int) = nullptr;
    int (*release)(int) = nullptr;
    int (*push)(void*) = nullptr;
    int (*pop)(void**) = nullptr;
    int (*error_string)(int, const char**) = nullptr;
    // HIP: the thread's device is set and restored
    int (*get_device)(int*) = nullptr;
    int (*set_device)(int) = nullptr;
    const char* (*hip_error_string)(int) = nullptr;
};

class Driver final : public CudaDriver {
public:
    Driver(void* library, bool hip, int ordinal, std::string name)
        : library_(library), hip_(hip), ordinal_(ordinal), name_(std::move(name)) {}
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    ~Driver() override {
        if (context_ != nullptr) calls_.release(device_);
        dlclose(library_);
    }

    Result<void> open() {
        ONEBIT_RETURN_IF_ERROR(load());
        if (const int code = calls_.init(0)) return failed("init", code);
        if (const int code = calls_.device_get(&device_, ordinal_)) return failed("deviceGet", code);
        if (!hip_)
            if (const int code = calls_.retain(&context_, device_)) return failed("devicePrimaryCtxRetain", code);
        if (const int code = calls_.get_uuid(uuid_.data(), device_)) return failed("deviceGetUuid", code);
        return {};
    }

    const DeviceUuid& uuid() const override { return uuid_; }

    Result<Mapping> map(int fd, uint64_t allocation) override {
        const Current current(*this);
        HandleDesc handle;
        handle.handle.fd = fd;
        handle.size = allocation;
        Mapping mapping;
        if (const int code = calls_.import_memory(&mapping.memory, &handle))
            return failed("importExternalMemory", code);
        BufferDesc buffer;
        buffer.size = allocation;
        if (const int code = calls_.mapped_buffer(&mapping.address, mapping.memory, &buffer)) {
            calls_.destroy_memory(mapping.memory);
            return failed("externalMemoryGetMappedBuffer", code);
        }
        return mapping;
    }

    void unmap(const Mapping& mapping) override {
        const Current current(*this);
        calls_.free_buffer(mapping.address);
        calls_.destroy_memory(mapping.memory);
    }

    Result<void> write(uint64_t address, const void* data, size_t bytes) override {
        const Current current(*this);
        if (const int code = calls_.to_device(address, data, bytes, stream_per_thread))
            return failed("memcpyHtoDAsync", code);
        if (const int code = calls_.stream_synchronize(stream_per_thread)) return failed("streamSynchronize", code);
        return {};
    }

    Result<void> read(uint64_t address, void* data, size_t bytes) override {
        const Current current(*this);
        if (const int code = calls_.to_host(data, address, bytes, stream_per_thread))
            return failed("memcpyDtoHAsync", code);
        if (const int code = calls_.stream_synchronize(stream_per_thread)) return failed("streamSynchronize", code);
        return {};
    }

private:
    // Makes the device current on this thread until the end of the scope.
    class Current {
    public:
        explicit Current(const Driver& driver) : driver_(driver) {
            if (driver.hip_) {
                driver.calls_.get_device(&before_);
                driver.calls_.set_device(driver.ordinal_);
            } else {
                driver.calls_.push(driver.context_);
            }
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        ~Current() {
            void* popped = nullptr;
            if (driver_.hip_)
                driver_.calls_.set_device(before_);
            else
                driver_.calls_.pop(&popped);
        }

    private:
        const Driver& driver_;
        int before_ = 0;
    };

    template <typename F>
    bool find(F& function, const char* cuda, const char* hip) {
        const char* symbol = hip_ ? hip : cuda;
        if (symbol == nullptr) return true;
        function = reinterpret_cast<F>(dlsym(library_, symbol));
        if (function == nullptr && missing_.empty()) missing_ = symbol;
        return function != nullptr;
    }

    Result<void> load() {
        find(calls_.init, "cuInit", "hipInit");
        find(calls_.device_get, "cuDeviceGet", "hipDeviceGet");
        find(calls_.get_uuid, "cuDeviceGetUuid", "hipDeviceGetUuid");
        find(calls_.import_memory, "cuImportExternalMemory", "hipImportExternalMemory");
        find(calls_.mapped_buffer, "cuExternalMemoryGetMappedBuffer", "hipExternalMemoryGetMappedBuffer");
        find(calls_.destroy_memory, "cuDestroyExternalMemory", "hipDestroyExternalMemory");
        find(calls_.free_buffer, "cuMemFree_v2", "hipFree");
        find(calls_.to_device, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync");
        find(calls_.to_host, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync");
        find(calls_.stream_synchronize, "cuStreamSynchronize", "hipStreamSynchronize");
        find(calls_.retain, "cuDevicePrimaryCtxRetain", nullptr);
        find(calls_.release, "cuDevicePrimaryCtxRelease_v2", nullptr);
        find(calls_.push, "cuCtxPushCurrent_v2", nullptr);
        find(calls_.pop, "cuCtxPopCurrent_v2", nullptr);
        find(calls_.error_string, "cuGetErrorString", nullptr);
        find(calls_.get_device, nullptr, "hipGetDevice");
        find(calls_.set_device, nullptr, "hipSetDevice");
        find(calls_.hip_error_string, nullptr, "hipGetErrorString");
        if (!missing_.empty())
            return Error{ErrorCode::unsupported, name_, "the function " + missing_, "none", "install a newer driver"};
        return {};
    }

    Error failed(const char* call, int code) const {
        const char* text = nullptr;
        if (hip_)
            text = calls_.hip_error_string(code);
        else
            calls_.error_string(code, &text);
        return {ErrorCode::unavailable, name_ + ", device " + std::to_string(ordinal_) + ", " + call, "success",
                std::to_string(code) + (text != nullptr ? std::string(" (") + text + ")" : ""), ""};
    }

    void* library_;
    bool hip_;
    int ordinal_;
    std::string name_, missing_;
    Calls calls_;
    int device_ = 0;
    void* context_ = nullptr;
    DeviceUuid uuid_ = {};
};

}  // namespace

Result<std::unique_ptr<CudaDriver>> open_cuda_driver(bool hip, int ordinal) {
    const char* name = hip ? "libamdhip64.so" : "libcuda.so.1";
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = dlerror();
        return Error{ErrorCode::not_found, name, "the driver's library", reason != nullptr ? reason : "none",
                     "install the driver of this GPU"};
    }
    auto driver = std::make_unique<Driver>(library, hip, ordinal, name);
    ONEBIT_RETURN_IF_ERROR(driver->open());
    return std::unique_ptr<CudaDriver>(std::move(driver));
}

}  // namespace onebit::tandem
