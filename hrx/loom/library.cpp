#include "hrx/loom/library.h"

#include <cstdlib>
#include <cstring>

#include "base/load_library.h"

namespace onebit::loom {
namespace {

constexpr const char* file_name = "libloom.so";

std::vector<std::filesystem::path> usual_places() {
    if (const char* chosen = std::getenv("ONEBIT_LOOM_LIBRARY"); chosen != nullptr && *chosen != 0) return {chosen};
    std::vector<std::filesystem::path> places;
    std::error_code problem;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
    if (!problem) {
        places.push_back(program.parent_path() / file_name);
        places.push_back(program.parent_path().parent_path() / "lib" / "1bit" / file_name);
    }
    places.emplace_back(ONEBIT_LOOM_BUILT);
    return places;
}

template <typename Function>
bool find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
}

ErrorCode code_of(loom_result result) {
    switch (result) {
        case LOOM_INVALID_ARGUMENT:
            return ErrorCode::usage;
        case LOOM_NOT_FOUND:
            return ErrorCode::not_found;
        case LOOM_UNSUPPORTED:
            return ErrorCode::unsupported;
        case LOOM_INVALID_DATA:
            return ErrorCode::invalid;
        case LOOM_OUT_OF_MEMORY:
            return ErrorCode::no_space;
        case LOOM_OK:
        case LOOM_FAILED:
            break;
    }
    return ErrorCode::internal;
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::open(const std::filesystem::path& file) {
    const auto places = file.empty() ? usual_places() : std::vector{file};
    std::string tried;
    for (const auto& place : places) {
        std::shared_ptr<Library> library(new Library);
        if (const auto opened = library->open_file(place); !opened.ok()) {
            tried += (tried.empty() ? "" : "; ") + place.string() + ": " + opened.error().found;
            continue;
        }
        return std::shared_ptr<const Library>(std::move(library));
    }
    return Error{ErrorCode::unavailable, file_name, "the compiler of kernels of this build", tried,
                 "build the target loom, or set ONEBIT_LOOM_LIBRARY"};
}

Result<void> Library::open_file(const std::filesystem::path& file) {
    std::string problem;
    void* library = load_library(file.string(), problem);
    const auto refuse = [&](const std::string& found) {
        if (library != nullptr) dlclose(library);
        return Error{ErrorCode::unavailable, file.string(), "libloom", found, ""};
    };
    if (library == nullptr) return refuse(problem);
    decltype(&loom_version) version = nullptr;
    decltype(&loom_compiler) compiler = nullptr;
    if (!find(library, "loom_version", &version) || !find(library, "loom_compiler", &compiler) ||
        !find(library, "loom_compile", &compile_) || !find(library, "loom_image_free", &free_)) {
        return refuse("a library without Loom's functions");
    }
    if (version() != LOOM_VERSION) return refuse("version " + std::to_string(version()));
    // the disk cache is keyed by what this side was built for
    if (std::strcmp(compiler(), ONEBIT_LOOM_COMPILER) != 0) return refuse(std::string("compiler ") + compiler());
    file_ = file;
    return {};
}

Result<Library::Compiled> Library::compile(const Request& request, loom_output output) const {
    std::vector<loom_constant> constants;
    for (const Constant& declared : request.kernel->constants) {
        const auto given = request.constants.find(declared.name);
        constants.push_back(
            {declared.name.data(), given == request.constants.end() ? LOOM_RUN_TIME : uint64_t{given->second}});
    }
    const auto bitcode = request.bitcode();
    const loom_request wanted{bitcode.data(),
                              bitcode.size(),
                              request.kernel->name.data(),
                              request.target->name.data(),
                              request.workgroup(),
                              static_cast<uint32_t>(constants.size()),
                              constants.data(),
                              static_cast<uint32_t>(output)};
    loom_image image{};
    loom_error error{};
    if (const loom_result result = compile_(&wanted, &image, &error); result != LOOM_OK) {
        return Error{code_of(result), error.subject, error.expected, error.found, ""};
    }
    Compiled compiled;
    compiled.times = image.times;
    const auto* bytes = static_cast<const std::byte*>(image.data);
    compiled.bytes.assign(bytes, bytes + image.size);
    free_(&image);
    return compiled;
}

}  // namespace onebit::loom
