// What the name of a model's file says: shard numbers, quantization, projector.
#pragma once

#include <optional>
#include <string>

namespace onebit {

// "PREFIX-00001-of-00003.gguf", the one form that llama.cpp opens. number: from 1. Whether such a file really is a
// shard only its metadata say.
struct ShardName {
    std::string prefix;
    unsigned number = 0, count = 0;
};
std::optional<ShardName> parse_shard_name(const std::string& file_name);
std::string shard_file_name(const ShardName& name);

bool has_gguf_extension(const std::string& file_name);
// Without .gguf in any case.
std::string stem_of(const std::string& file_name);

// "Q4_K_M" of "Qwen3-4B-Q4_K_M" or "qwen.q4_k_m", "UD-Q4_K_XL" too; "" when the name has none. In upper case.
std::string quantization_in_name(const std::string& stem);

bool names_projector(const std::string& file_name);

// The name without "mmproj", quantization, separators and case: equal for a model and its projector.
std::string base_of_name(const std::string& stem);

std::string lower_case(std::string text);

}  // namespace onebit
