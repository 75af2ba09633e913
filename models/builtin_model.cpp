#include "models/builtin_model.h"

#include <cstdlib>
#include <string>
#include <system_error>

namespace onebit {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_name = "onebit-tiny-f16.gguf";
constexpr std::string_view remedy = "set ONEBIT_BUILTIN_MODEL to a GGUF file, or name a model";

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return path.native().find('\0') == std::string::npos && fs::is_regular_file(path, ignored);
}

}  // namespace

Result<fs::path> find_builtin_model(std::string_view named, const fs::path& program_folder,
                                    const fs::path& source_folder) {
    if (!named.empty()) {
        const fs::path path(named);
        if (is_file(path)) return path;
        return Error{ErrorCode::not_found, "ONEBIT_BUILTIN_MODEL", "the path of a GGUF file",
                     "'" + std::string(named) + "', which is no file", std::string(remedy)};
    }
    std::string looked_at;
    for (const fs::path& folder :
         {program_folder.empty() ? fs::path() : program_folder / "../share/1bit/models", source_folder}) {
        if (folder.empty()) continue;
        fs::path path = (folder / file_name).lexically_normal();
        if (is_file(path)) return path;
        looked_at += (looked_at.empty() ? "none at " : " and ") + path.string();
    }
    return Error{ErrorCode::not_found, "the built-in model", "a file " + std::string(file_name),
                 looked_at.empty() ? "no place to look at" : looked_at, std::string(remedy)};
}

Result<fs::path> builtin_model() {
    const char* named = std::getenv("ONEBIT_BUILTIN_MODEL");
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return find_builtin_model(named ? named : "", error ? fs::path() : program.parent_path(), ONEBIT_BUILTIN_MODEL_DIR);
}

}  // namespace onebit
