// Reads the head of a GGUF file without trusting one byte of it: for listing, for errors a person understands, and so
// that a damaged file is refused before any device memory is taken. Layout: ggml/docs/gguf.md of llama.cpp, version 3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace onebit {

struct GgufTensor {
    std::string name;
    std::vector<uint64_t> shape;  // 1 to 4 dimensions, ne[0] first; a scalar is {1}
    uint32_t type = 0;            // ggml_type
    uint64_t offset = 0;          // from the start of the data section
    uint64_t bytes = 0;
};

// Scalars and strings by value; of an array only its type and length are kept.
struct GgufArray {
    uint32_t type = 0;
    uint64_t length = 0;
};
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string, GgufArray>;

struct GgufHead {
    uint32_t version = 0;
    std::map<std::string, GgufValue> values;
    std::vector<GgufTensor> tensors;
    uint64_t data_offset = 0;
    uint64_t file_bytes = 0;
    uint64_t expected_bytes = 0;             // end of the last tensor
    uint64_t alignment = 32;                 // of the data section and of each tensor in it, in bytes
    uint16_t split_no = 0, split_count = 1;  // by the metadata; the file's name has no say

    std::string text(const std::string& key) const;  // "" if missing or no string
    uint64_t number(const std::string& key, uint64_t fallback) const;
};

// Checks magic, version, every length against the file's size, types, shapes, products for overflow, alignment, overlap
// and that each tensor ends inside the file. Never allocates more than a few times the bytes it has read.
// Error not_found / io; invalid with a message that says what the file is instead (Git LFS pointer, HTML page, joined
// shards, big-endian, truncated at N of M bytes with the first tensor past the end, unknown or removed tensor type).
Result<GgufHead> read_gguf_head(const std::filesystem::path& path);

}  // namespace onebit
