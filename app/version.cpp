#include "app/version.h"

#include <build-info.h>
#include <ggml.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"

namespace onebit {
namespace {

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin < text.size();) {
        size_t end = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

}  // namespace

BuildInfo build_info() {
    return {
        .version = ONEBIT_VERSION,
        .llama_tag = ONEBIT_LLAMA_TAG,
        .llama_tree = ONEBIT_LLAMA_TREE,
        .llama_pin_date = ONEBIT_LLAMA_PIN_DATE,
        .llama_build = llama_build_info(),
        .ggml_version = ggml_version(),
        .compiler = ONEBIT_COMPILER,
        .build_type = ONEBIT_BUILD_TYPE,
        .sanitizer = ONEBIT_SANITIZER,
        .backends = split(ONEBIT_BACKENDS),
    };
}

std::filesystem::path program_path() {
    std::error_code error;
    std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
    // replaced on disk while it runs: the link itself still leads to the very same binary
    if (!error && path.native().ends_with(" (deleted)")) return "/proc/self/exe";
    return path;
}

std::string version_line() {
    return "1bit " + std::string(ONEBIT_VERSION) + " (llama.cpp " + std::string(ONEBIT_LLAMA_TAG) + ")";
}

std::string version_text(const BuildInfo& info, const std::filesystem::path& program) {
    std::string backends;
    for (const std::string& name : info.backends) backends += (backends.empty() ? "" : ", ") + name;
    std::string text = "1bit " + info.version + "\n";
    text += "llama.cpp  " + info.llama_tag + ", pinned on " + info.llama_pin_date + ", build " + info.llama_build +
            ", ggml " + info.ggml_version + "\n";
    text += "source     tree " + info.llama_tree + "\n";
    text += "backends   " + backends + "\n";
    text += "built      " + info.build_type + (info.sanitizer.empty() ? "" : ", sanitizer " + info.sanitizer) +
            ", with " + info.compiler + "\n";
    text += "program    " + printable(program.string()) + "\n";
    return text;
}

std::string version_json(const BuildInfo& info, const std::filesystem::path& program) {
    nlohmann::ordered_json json = {
        {"version", info.version},
        {"llama_cpp",
         {{"tag", info.llama_tag},
          {"tree", info.llama_tree},
          {"pin_date", info.llama_pin_date},
          {"build", info.llama_build},
          {"ggml", info.ggml_version}}},
        {"backends", info.backends},
        {"build_type", info.build_type},
        {"sanitizer", info.sanitizer},
        {"compiler", info.compiler},
        {"program", printable(program.string())},
    };
    return json.dump(2) + "\n";
}

}  // namespace onebit
