// The part of the CUDA driver API that mapping foreign memory needs, opened at run time; HIP offers the same calls
// under its own names, with the same structures (HIP API reference, external resource interoperability). Declared from
// the public reference of the CUDA driver API, sections 6.8 (context), 6.11 (memory) and 6.20 (external resources).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/device_id.h"
#include "base/result.h"

namespace onebit::tandem {

// Driver calls for one device; each makes the device's primary context current for its own duration. Any thread.
class CudaDriver {
public:
    virtual ~CudaDriver() = default;

    virtual const DeviceUuid& uuid() const = 0;

    struct Mapping {
        void* memory = nullptr;  // the imported object
        uint64_t address = 0;    // byte 0 on the device
    };
    // Takes the descriptor on success only. size is the exporter's allocation in bytes; the memory is a dedicated one.
    virtual Result<Mapping> map(int fd, uint64_t allocation) = 0;
    virtual void unmap(const Mapping& mapping) = 0;

    // Complete on return; the error names the driver's call and result.
    virtual Result<void> write(uint64_t address, const void* data, size_t bytes) = 0;
    virtual Result<void> read(uint64_t address, void* data, size_t bytes) = 0;
};

// library: "libcuda.so.1" or "libamdhip64.so"; ordinal: the driver's number of the device.
Result<std::unique_ptr<CudaDriver>> open_cuda_driver(bool hip, int ordinal);

}  // namespace onebit::tandem
