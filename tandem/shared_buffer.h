// The buffers that a tandem's members share. A shared buffer is an ordinary buffer of the owner, whose functions for
// reading, writing and freeing are led through the tandem.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ggml-backend-impl.h"
#include "tandem/guest.h"
#include "tandem/layout_manifest.h"

namespace onebit::tandem {

class Tandem;

struct SharedBuffer {
    Tandem* tandem = nullptr;
    ggml_backend_buffer_t buffer = nullptr;
    ggml_backend_buffer_i original = {};  // the owner's functions
    char* owner_base = nullptr;           // what tensor->data counts from
    char* host = nullptr;                 // where the CPU sees byte 0, or null
    size_t size = 0;
    std::vector<std::unique_ptr<Region>> regions;  // one a guest, in the tandem's order
    std::unique_ptr<LayoutManifest> layout;  // of the tensors that stay; compute buffers are laid out anew each time

    size_t offset_of(const ggml_tensor* tensor) const {
        return static_cast<size_t>(static_cast<const char*>(tensor->data) - owner_base);
    }
};

// A tensor over some bytes of a buffer, for calls of ggml that take tensors. data: as the buffer's backend counts it.
ggml_tensor bytes_of(ggml_backend_buffer_t buffer, char* data, size_t bytes);

// All shared buffers of the process, by the address of the ggml buffer. Any thread.
class SharedBuffers {
public:
    static SharedBuffers& instance();

    // Wraps the buffer's functions. Takes the regions.
    void add(std::unique_ptr<SharedBuffer> shared);

    // Null for a buffer that is not shared. Valid until the buffer is freed.
    SharedBuffer* find(ggml_backend_buffer_t buffer) const;

    // Changes whenever a buffer is freed: a new one may then have the same address.
    uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

    std::unique_ptr<SharedBuffer> remove(ggml_backend_buffer_t buffer);

private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<ggml_backend_buffer_t, std::unique_ptr<SharedBuffer>> buffers_;
    std::atomic<uint64_t> generation_{1};
};

}  // namespace onebit::tandem
