// Where libhsa-runtime64 is looked for.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "hrx/runtime/drivers/amdgpu/libhsa.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

namespace fs = std::filesystem;
constexpr const char* soname = "libhsa-runtime64.so.1";

// A variable may name the library or the folder that holds it.
std::string library_of(const std::string& value) {
    std::error_code ignored;
    if (!fs::is_directory(value, ignored)) return value;
    // a folder of a build has the name without the number
    for (const std::string name : {soname, "libhsa-runtime64.so"}) {
        if (fs::exists(value + "/" + name, ignored)) return value + "/" + name;
    }
    return value + "/" + soname;
}

// Folders of parent whose names begin with prefix; later versions first.
std::vector<fs::path> folders(const fs::path& parent, const std::string& prefix) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
        if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
    }
    // numbers within the names by value: rocm-10.0 is later than rocm-9.9
    std::ranges::sort(
        found, [](const fs::path& left, const fs::path& right) { return strverscmp(left.c_str(), right.c_str()) > 0; });
    return found;
}

void add_existing(std::vector<Candidate>& list, const char* origin, const std::vector<fs::path>& libraries,
                  const std::string& where) {
    const size_t before = list.size();
    for (const fs::path& library : libraries) {
        std::error_code ignored;
        if (!fs::exists(library, ignored)) continue;
        if (std::ranges::any_of(list, [&](const Candidate& one) { return one.library == library.string(); })) continue;
        list.push_back({origin, library.string(), ""});
    }
    if (list.size() == before) list.push_back({origin, where, std::string("no ") + soname + " there"});
}

}  // namespace

std::vector<Candidate> candidates(const std::string& root, const char* (*environment)(const char* name)) {
    std::vector<Candidate> list;
    const auto value = [environment](const char* name) {
        const char* text = environment(name);
        return std::string(text == nullptr ? "" : text);
    };
    if (const std::string named = value("ONEBIT_HRX_LIBHSA"); !named.empty()) {
        // who names a library wants no other
        return {{"ONEBIT_HRX_LIBHSA", library_of(named), ""}};
    }
    if (const std::string named = value("IREE_HAL_AMDGPU_LIBHSA_PATH"); !named.empty()) {
        list.push_back({"IREE_HAL_AMDGPU_LIBHSA_PATH", library_of(named), ""});
    }
#ifdef ONEBIT_HRX_DEFAULT_LIBHSA
    list.push_back({"build", ONEBIT_HRX_DEFAULT_LIBHSA, ""});
#endif

    std::vector<fs::path> rocm;
    if (const std::string path = value("ROCM_PATH"); !path.empty()) rocm.push_back(path);
    for (const fs::path& folder : folders(root + "/opt", "rocm")) {
        rocm.push_back(folder);
        // newer releases have their core in a folder of its own
        for (const fs::path& core : folders(folder, "core")) rocm.push_back(core);
    }
    std::vector<fs::path> libraries;
    libraries.reserve(rocm.size());
    for (const fs::path& folder : rocm) libraries.push_back(folder / "lib" / soname);
    add_existing(list, "ROCm", libraries, root + "/opt/rocm*/lib");

    // TheRock's wheels
    libraries.clear();
    std::vector<std::string> prefixes = {value("VIRTUAL_ENV")};
    if (const std::string home = value("HOME"); !home.empty()) prefixes.push_back(home + "/.local");
    for (const std::string& prefix : prefixes) {
        if (prefix.empty()) continue;
        for (const fs::path& python : folders(prefix + "/lib", "python3")) {
            libraries.push_back(python / "site-packages/_rocm_sdk_core/lib" / soname);
        }
    }
    add_existing(list, "TheRock", libraries, "site-packages/_rocm_sdk_core/lib");

    list.push_back({"system", soname, ""});
    return list;
}

}  // namespace onebit::hrx::runtime::amdgpu
