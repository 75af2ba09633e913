// The tensor types and file types of GGUF as the pinned llama.cpp knows them, and those that it has given up.
// tests/engine/loader_test.cpp holds this table against ggml's own.
#pragma once

#include <cstdint>
#include <string>

namespace onebit {

struct GgufType {
    const char* name;    // "Q4_K"
    uint32_t block;      // elements in one block; 0: removed from the format
    uint32_t bytes;      // of one block
    const char* remedy;  // of a removed type: what to use instead; else nullptr
};

inline constexpr uint32_t kGgufTypeCount = 43;

// nullptr: a number that this build has never heard of.
const GgufType* gguf_type(uint32_t type);

// The quantization that general.file_type stands for, such as "Q4_K_M"; "" when unknown.
std::string gguf_file_type_name(uint64_t file_type);

// The llama.cpp release that this build holds, such as "v0.5.0".
const char* llama_release();

}  // namespace onebit
