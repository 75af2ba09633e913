// A guest of a tandem: a member that maps the owner's memory and computes on it in place. A new backend becomes a guest
// by one file that implements these two classes; all else a guest does goes through its ggml device.
#pragma once

#include <memory>

#include "base/device_id.h"
#include "base/result.h"
#include "ggml-backend.h"
#include "tandem/memory.h"

namespace onebit::tandem {

// One shared buffer in the guest's address space. Destroyed, with the guest idle, before the owner frees the memory.
class Region {
public:
    virtual ~Region() = default;

    // The guest's address of byte 0. Equal to the owner's offset modulo 4096, so that kernels which choose by alignment
    // choose as they would in memory of their own.
    char* base() const { return base_; }

    // A ggml buffer of the guest's default type over the region, for tensors to point at. Owned by the region.
    ggml_backend_buffer_t buffer() const { return buffer_; }

    // Reads and writes through the guest's API; complete on return. Bytes are within the region. Any thread. False when
    // the driver refuses, which the guest has logged.
    virtual bool write(size_t offset, const void* data, size_t bytes) = 0;
    virtual bool read(size_t offset, void* data, size_t bytes) = 0;

protected:
    char* base_ = nullptr;
    ggml_backend_buffer_t buffer_ = nullptr;
};

// Threads: any, once made.
class Guest {
public:
    virtual ~Guest() = default;

    virtual ggml_backend_dev_t device() const = 0;

    // Kinds of handles that map() takes, best first being the highest value.
    virtual MemoryKinds kinds() const = 0;

    // Whether this guest is on the owner's hardware and its driver can map the owner's memory. The error says which
    // capability is missing.
    virtual Result<void> probe(const DeviceId& owner) const = 0;

    // Maps the memory. Takes the handle with its descriptor, also on failure.
    virtual Result<std::unique_ptr<Region>> map(SharedMemory memory) = 0;
};

// The CPU, through the owner's host mapping.
Result<std::unique_ptr<Guest>> make_cpu_guest(ggml_backend_dev_t device);

// ggml-cuda, through cuImportExternalMemory (CUDA driver API, external resource interoperability); ggml-hip through
// hipImportExternalMemory, which takes the same structures. The driver library is opened at run time.
Result<std::unique_ptr<Guest>> make_cuda_guest(ggml_backend_dev_t device);

// By the device's backend. Error unsupported for a backend that cannot be a guest.
Result<std::unique_ptr<Guest>> make_guest(ggml_backend_dev_t device);

}  // namespace onebit::tandem
