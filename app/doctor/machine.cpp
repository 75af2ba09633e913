#include <dlfcn.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/doctor/checks.h"
#include "app/doctor/probe.h"
#include "base/cache_folder.h"

namespace onebit {
namespace {

// A driver with a cold cache of its own may take seconds; one that takes longer hangs.
constexpr std::chrono::seconds load_limit{20}, vulkan_limit{60};

uint64_t soft_limit(int which) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(which), &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : static_cast<uint64_t>(limit.rlim_cur);
}

std::optional<uint64_t> free_space(const std::filesystem::path& folder) {
    for (std::filesystem::path path = folder;; path = path.parent_path()) {
        struct statvfs info {};
        if (::statvfs(path.c_str(), &info) == 0) return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
        if (path == path.parent_path()) return std::nullopt;
    }
}

Result<void> load_in_child(const std::string& library) {
    const ProbeResult result = run_probe(
        [&library](std::string* output) {
            if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return 0;
            const char* reason = dlerror();
            *output = reason != nullptr ? reason : "no reason given";
            return 1;
        },
        load_limit);
    if (result.ok()) return {};
    const bool refused = result.ending == ProbeResult::Ending::exited && !result.output.empty();
    return Error{ErrorCode::unavailable, library, "a library that loads", refused ? result.output : result.reason(),
                 ""};
}

using Json = nlohmann::json;

Result<std::vector<VulkanDevice>> vulkan_in_child() {
    const ProbeResult result = run_probe(
        [](std::string* output) {
            auto devices = query_vulkan();
            if (!devices.ok()) {
                *output = devices.error().expected + " is missing: " + devices.error().found;
                return 1;
            }
            Json list = Json::array();
            for (const VulkanDevice& device : *devices) {
                list.push_back({printable(device.name), printable(device.driver), device.api_version, device.on_cpu,
                                device.integrated, device.cooperative_matrix,
                                device.pci ? to_string(*device.pci) : ""});
            }
            *output = list.dump();
            return 0;
        },
        vulkan_limit);
    if (!result.ok()) {
        const bool told = result.ending == ProbeResult::Ending::exited && !result.output.empty();
        return Error{ErrorCode::unavailable, "Vulkan", "a list of devices",
                     told ? result.output : "the probe " + result.reason(), ""};
    }
    std::vector<VulkanDevice> devices;
    const Json list = Json::parse(result.output, nullptr, false);
    if (!list.is_array()) return devices;
    for (const Json& one : list) {
        VulkanDevice device;
        device.name = one[0];
        device.driver = one[1];
        device.api_version = one[2];
        device.on_cpu = one[3];
        device.integrated = one[4];
        device.cooperative_matrix = one[5];
        const auto address = parse_pci_address(one[6].get<std::string>());
        if (address.ok()) device.pci = *address;
        devices.push_back(std::move(device));
    }
    return devices;
}

}  // namespace

Machine this_machine() {
    Machine machine;
    for (const char* name :
         {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS",
          "XDG_DATA_HOME", "XDG_DATA_DIRS", "GGML_VK_VISIBLE_DEVICES", "GGML_DISABLE_VULKAN", "CUDA_VISIBLE_DEVICES",
          "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ONEBIT_CACHE", "ONEBIT_MODELS",
          "ONEBIT_BUILTIN_MODEL", "ONEBIT_HRX_LIBHSA", "ONEBIT_HRX_LIBCUDA", "IREE_HAL_AMDGPU_LIBHSA_PATH"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && *value != '\0') machine.environment[name] = value;
    }
    if (const passwd* user = getpwuid(getuid()); user != nullptr) {
        machine.user = user->pw_name;
        machine.home = user->pw_dir;
    }
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') machine.home = home;
    utsname system{};
    if (uname(&system) == 0) machine.kernel = std::string(system.release) + " " + system.machine;
    machine.memory_lock_limit = soft_limit(RLIMIT_MEMLOCK);
    machine.open_files_limit = soft_limit(RLIMIT_NOFILE);
    machine.may_open = [](const std::string& path) { return ::access(path.c_str(), R_OK | W_OK) == 0; };
    machine.disk_free = free_space;
    machine.cache_folder = cache_folder;
    machine.models_folder = models_folder;
    machine.load_library = load_in_child;
    machine.vulkan_devices = vulkan_in_child;
#ifdef ONEBIT_HRX
    machine.hrx_attempts = hrx_attempts_in_child;
#endif
    return machine;
}

}  // namespace onebit
