// What a GGUF head must hold beyond its layout so that llama.cpp's loader, which ends the process on some of these,
// never sees it. Limits follow the pinned llama.cpp; tests/engine/loader_test.cpp holds them against it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/catalog/gguf_file.h"

namespace onebit {

inline constexpr uint64_t kMaxModelLayers = 512;
inline constexpr uint64_t kMaxModelExperts = 1024;
// llama.cpp has no limit and makes as many as the file says; real vocabularies stay below a million
inline constexpr uint64_t kMostModelTokens = 1u << 22;

// What is wrong: the parts of an Error without its subject.
struct GgufFault {
    std::string expected, found, remedy;
};

// GGUF's own numbers of value types.
enum GgufValueType : uint32_t {
    kGgufU8,
    kGgufI8,
    kGgufU16,
    kGgufI16,
    kGgufU32,
    kGgufI32,
    kGgufF32,
    kGgufBool,
    kGgufString,
    kGgufArray,
    kGgufU64,
    kGgufI64,
    kGgufF64,
    kGgufValueTypes,
};
// Bytes of a scalar; 0 for strings, arrays and unknown types.
uint32_t gguf_value_bytes(uint32_t type);
const char* gguf_value_name(uint32_t type);

// The types of the values as they stand in the file, by key.
using GgufKeyTypes = std::map<std::string, uint32_t>;

// What the reader noted of the vocabulary while it skipped its arrays.
struct VocabularyNotes {
    std::vector<uint64_t> token_hashes;  // of every text of tokenizer.ggml.tokens, in any order
    bool byte_tokens = false;            // a token of the type "byte"
};

// Sorts the hashes.
std::optional<GgufFault> check_gguf_rules(const GgufHead& head, const GgufKeyTypes& types, VocabularyNotes& notes);

// What a file without GGUF's magic is instead. start: its first bytes, at most 512 are looked at.
GgufFault name_foreign_file(std::string_view start, uint64_t file_bytes);

}  // namespace onebit
