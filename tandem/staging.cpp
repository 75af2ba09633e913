#include "tandem/staging.h"

#include <algorithm>
#include <bit>

namespace onebit::tandem {
namespace {

constexpr size_t smallest_block = size_t{1} << 20, limit = size_t{512} << 20;

}  // namespace

Staging::~Staging() {
    for (const Block& block : blocks_) ggml_backend_buffer_free(block.buffer);
}

char* Staging::take(size_t bytes) {
    bytes = (bytes + 63) & ~size_t{63};
    for (Block& block : blocks_) {
        if (ggml_backend_buffer_get_size(block.buffer) - block.used < bytes) continue;
        char* memory = static_cast<char*>(ggml_backend_buffer_get_base(block.buffer)) + block.used;
        block.used += bytes;
        return memory;
    }
    const size_t size = std::max(smallest_block, std::bit_ceil(bytes));
    if (total_ + size > limit) return nullptr;
    ggml_backend_buffer_type_t type = ggml_backend_dev_host_buffer_type(device_);
    if (type == nullptr) type = ggml_backend_dev_buffer_type(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, size);
    if (buffer == nullptr) return nullptr;
    total_ += size;
    blocks_.push_back({buffer, bytes});
    return static_cast<char*>(ggml_backend_buffer_get_base(buffer));
}

void Staging::reset() {
    for (Block& block : blocks_) block.used = 0;
}

}  // namespace onebit::tandem
