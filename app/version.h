// What this program was built from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace onebit {

struct BuildInfo {
    std::string version;                // of 1bit
    std::string llama_tag, llama_tree;  // the pin: release and git tree hash of its source
    std::string llama_pin_date;         // when the pin was moved, YYYY-MM-DD
    std::string llama_build;            // what llama.cpp says of itself
    std::string ggml_version;
    std::string compiler, build_type, sanitizer;
    std::vector<std::string> backends;  // compiled in
};

BuildInfo build_info();

// This binary; empty when the system does not say.
std::filesystem::path program_path();

// "1bit 0.1.0 (llama.cpp v0.5.0)"
std::string version_line();

std::string version_text(const BuildInfo& info, const std::filesystem::path& program);
std::string version_json(const BuildInfo& info, const std::filesystem::path& program);

}  // namespace onebit
