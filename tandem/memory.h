// Memory that the owner of a tandem allocates and its guests map: how it is handed over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/device_id.h"
#include "base/unique_fd.h"

namespace onebit::tandem {

// A way of handing memory over. A set of kinds is their sum; the values are those of onebit_vkshare_kind.
enum MemoryKind : uint32_t {
    host_pointer = 1,  // an address of this process
    opaque_fd = 2,     // a descriptor that only another API of the same driver understands
    dma_buf = 4,       // a Linux dma-buf
};
using MemoryKinds = uint32_t;

const char* to_string(MemoryKind kind);

// One handle to one buffer. Owns the descriptor; the host pointer is valid as long as the owner's buffer.
struct SharedMemory {
    MemoryKind kind = host_pointer;
    UniqueFd fd;              // for opaque_fd and dma_buf
    void* host = nullptr;     // for host_pointer
    uint64_t size = 0;        // bytes of the buffer
    uint64_t allocation = 0;  // bytes behind the handle, at least size
};

}  // namespace onebit::tandem
