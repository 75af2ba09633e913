// The owner of a tandem: the member whose API allocates the memory that all members use.
#pragma once

#include <memory>
#include <string_view>

#include "base/device_id.h"
#include "base/result.h"
#include "ggml-backend.h"
#include "tandem/memory.h"

namespace onebit::tandem {

// Threads: any, once made. Errors name the device and the refusal of its driver.
class Owner {
public:
    virtual ~Owner() = default;

    virtual ggml_backend_dev_t device() const = 0;

    // The hardware, with PCI address and UUID where the driver tells them.
    virtual const DeviceId& identity() const = 0;

    // Kinds in which share() can hand over what allocate() makes.
    virtual MemoryKinds kinds() const = 0;

    // An ordinary buffer of the owner's own default type, of size bytes (not 0), that share() accepts for each of
    // kinds. The caller frees it.
    virtual Result<ggml_backend_buffer_t> allocate(size_t size, MemoryKinds kinds) = 0;

    // A handle of a buffer made by allocate() with this kind.
    virtual Result<SharedMemory> share(ggml_backend_buffer_t buffer, MemoryKind kind) = 0;

    // Where the CPU sees byte 0 of the buffer, or null when it does not.
    virtual void* host(ggml_backend_buffer_t buffer) const = 0;
};

// ggml-vulkan through its sharing unit (vkshare/). Refuses a ggml-vulkan that was built without the unit, a device that
// was used before, and a driver that shares nothing.
Result<std::unique_ptr<Owner>> make_vulkan_owner(ggml_backend_dev_t device);

// The CPU's own memory: for machines without a GPU, and tests.
Result<std::unique_ptr<Owner>> make_cpu_owner(ggml_backend_dev_t device);

// By the device's backend. Error unsupported for a backend that cannot own memory.
Result<std::unique_ptr<Owner>> make_owner(ggml_backend_dev_t device);

}  // namespace onebit::tandem
