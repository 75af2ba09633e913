// What lies where in one shared buffer: one line a tensor, written down when the owner places it and compared when a
// guest first uses it, so that two members which disagree about a layout are found before they compute.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "ggml.h"

namespace onebit::tandem {

struct LayoutEntry {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    int64_t ne[GGML_MAX_DIMS] = {};
    size_t nb[GGML_MAX_DIMS] = {};
    size_t offset = 0;    // bytes from the begin of the buffer
    size_t reserved = 0;  // bytes that the strictest member asked for
};

// Any thread.
class LayoutManifest {
public:
    static constexpr int version = 1;

    // size: of the buffer; alignment: the strictest of the members. Both in bytes.
    LayoutManifest(size_t size, size_t alignment) : size_(size), alignment_(alignment) {}

    // Writes down a tensor that was placed at offset. Error invalid when it is not aligned or does not end within the
    // buffer.
    Result<void> add(const ggml_tensor* tensor, size_t offset, size_t reserved);

    // Compares a member's view of a tensor with what was written down at that offset: type, elements and strides; names
    // change while a graph is built. A tensor that was never written down is right as long as it lies within the
    // buffer. Error invalid names the first field that differs.
    Result<void> check(const ggml_tensor* view, size_t offset) const;

    // Entries that share bytes, as "A and B": tensors of lasting buffers never do.
    std::vector<std::string> overlaps() const;

    // "version 1", the buffer, then one line a tensor in the order of their offsets.
    std::string text() const;

private:
    size_t size_, alignment_;
    mutable std::mutex mutex_;
    std::map<size_t, LayoutEntry> entries_;
};

}  // namespace onebit::tandem
