#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "app/doctor/checks.h"
#include "engine/devices_host.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSoftware = "software Vulkan";  // in the engine's name for it, engine/devices_group.cpp

std::string variable(const Machine& machine, const char* name, const std::string& fallback = {}) {
    const auto found = machine.environment.find(name);
    return found == machine.environment.end() || found->second.empty() ? fallback : found->second;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(':', start), text.size());
        if (end > start) parts.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

Manifest read_manifest(const std::string& file) {
    Manifest manifest{file, "", ""};
    std::error_code error;
    if (!fs::exists(file, error)) {
        manifest.problem = "no such file";
        return manifest;
    }
    const auto json = nlohmann::json::parse(read_small_file(file), nullptr, false);
    if (!json.is_object() || !json.contains("ICD") || !json["ICD"].is_object() ||
        !json["ICD"].contains("library_path") || !json["ICD"]["library_path"].is_string()) {
        manifest.problem = "not a manifest of a Vulkan driver (no ICD.library_path)";
        return manifest;
    }
    manifest.library = json["ICD"]["library_path"].get<std::string>();
    // a path is relative to the manifest, a bare name is searched by the dynamic linker
    if (manifest.library.find('/') != std::string::npos && manifest.library.front() != '/') {
        manifest.library = (fs::path(file).parent_path() / manifest.library).lexically_normal().string();
    }
    return manifest;
}

void add_folder(const std::string& folder, std::vector<Manifest>& list) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == ".json") files.push_back(it->path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) list.push_back(read_manifest(file));
}

std::string driver_remedy(const std::vector<PciGpu>& gpus) {
    const bool nvidia = std::ranges::any_of(gpus, [](const PciGpu& gpu) { return gpu.vendor == GpuVendor::nvidia; });
    const bool mesa =
        gpus.empty() || std::ranges::any_of(gpus, [](const PciGpu& gpu) { return gpu.vendor != GpuVendor::nvidia; });
    std::string text;
    if (mesa) text = "sudo apt-get install mesa-vulkan-drivers";
    if (nvidia)
        text += std::string(text.empty() ? "" : "; ") +
                "sudo apt-get install nvidia-vulkan-icd (with NVIDIA's own driver: install it with its libraries)";
    return text;
}

// Returns the variable that names the manifests, if one does.
std::string check_manifests(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings) {
    const Manifests manifests = vulkan_manifests(machine);
    const std::string where = manifests.variable.empty() ? "" : " (named by " + manifests.variable + ")";
    if (manifests.list.empty()) {
        findings.push_back({"vulkan drivers", gpus.empty() ? FindingStatus::warning : FindingStatus::problem,
                            "no manifest of a Vulkan driver (ICD) is installed" + where,
                            manifests.variable.empty() ? driver_remedy(gpus) : "unset " + manifests.variable});
    }
    for (const Manifest& manifest : manifests.list) {
        const std::string file = fs::path(manifest.file).filename().string();
        if (!manifest.problem.empty()) {
            findings.push_back(
                {"vulkan driver " + file, FindingStatus::problem, manifest.file + where + ": " + manifest.problem,
                 manifests.variable.empty() ? "reinstall the package that owns it (dpkg -S " + manifest.file + ")"
                                            : "unset " + manifests.variable});
            continue;
        }
        const auto loaded = machine.load_library(manifest.library);
        if (loaded.ok()) {
            findings.push_back({"vulkan driver " + file, FindingStatus::ok, manifest.library + " loads" + where, ""});
            continue;
        }
        // a 32-bit driver beside the 64-bit one is usual, and the loader passes over it
        const bool foreign = loaded.error().found.find("ELF class") != std::string::npos;
        findings.push_back(
            {"vulkan driver " + file, foreign ? FindingStatus::ok : FindingStatus::problem,
             manifest.library + where +
                 (foreign ? " is for another architecture, passed over" : " does not load: " + loaded.error().found),
             foreign
                 ? ""
                 : "reinstall the package that owns it (dpkg -S " + manifest.file + "), with the libraries it names"});
    }
    return manifests.variable;
}

}  // namespace

Manifests vulkan_manifests(const Machine& machine) {
    Manifests manifests;
    for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
        const std::string value = variable(machine, name);
        if (value.empty()) continue;
        manifests.variable = name;
        for (const std::string& item : split(value)) {
            std::error_code error;
            if (fs::is_directory(item, error))
                add_folder(item, manifests.list);
            else
                manifests.list.push_back(read_manifest(item));
        }
        return manifests;
    }
    for (const std::string& item : split(variable(machine, "VK_ADD_DRIVER_FILES")))
        manifests.list.push_back(read_manifest(item));
    std::vector<std::string> folders;
    const auto add = [&folders](const std::string& folder) {
        if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
    };
    const std::string home = machine.root + machine.home, under = "/vulkan/icd.d";
    add(variable(machine, "XDG_CONFIG_HOME", home + "/.config") + under);
    for (const std::string& base : split(variable(machine, "XDG_CONFIG_DIRS", machine.root + "/etc/xdg")))
        add(base + under);
    add(machine.root + "/etc" + under);
    add(variable(machine, "XDG_DATA_HOME", home + "/.local/share") + under);
    for (const std::string& base :
         split(variable(machine, "XDG_DATA_DIRS", machine.root + "/usr/local/share:" + machine.root + "/usr/share"))) {
        add(base + under);
    }
    for (const std::string& folder : folders) add_folder(folder, manifests.list);
    return manifests;
}

std::vector<VulkanDevice> check_vulkan(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings) {
    if (!machine.build.vulkan) {
        findings.push_back({"vulkan", gpus.empty() ? FindingStatus::ok : FindingStatus::warning,
                            "this 1bit was built without Vulkan",
                            gpus.empty() ? "" : "build it with ONEBIT_VULKAN=ON"});
        return {};
    }
    const auto loader = machine.load_library("libvulkan.so.1");
    if (!loader.ok()) {
        findings.push_back({"vulkan loader", FindingStatus::problem,
                            "libvulkan.so.1 does not load: " + loader.error().found,
                            "sudo apt-get install libvulkan1"});
        return {};
    }
    findings.push_back({"vulkan loader", FindingStatus::ok, "libvulkan.so.1 loads", ""});
    const std::string named_by = check_manifests(machine, gpus, findings);

    const auto devices = machine.vulkan_devices();
    if (!devices.ok()) {
        findings.push_back({"vulkan devices", gpus.empty() ? FindingStatus::warning : FindingStatus::problem,
                            devices.error().found, named_by.empty() ? driver_remedy(gpus) : "unset " + named_by});
        return {};
    }
    for (const VulkanDevice& device : *devices) {
        findings.push_back({"vulkan device", FindingStatus::ok,
                            device.name + (device.pci ? ", PCI " + to_string(*device.pci) : "") + ", " + device.driver +
                                ", Vulkan " + device.api_version +
                                (device.on_cpu ? ": software Vulkan, runs on the CPU, never chosen by itself" : ""),
                            ""});
    }
    for (const PciGpu& gpu : gpus) {
        if (gpu.driver.empty() || gpu.driver.starts_with("vfio")) continue;
        const bool seen =
            std::ranges::any_of(*devices, [&gpu](const VulkanDevice& device) { return device.pci == gpu.address; });
        // drivers without VK_EXT_pci_bus_info cannot be told apart: any real GPU of theirs may be this one
        const bool maybe =
            std::ranges::any_of(*devices, [](const VulkanDevice& device) { return !device.pci && !device.on_cpu; });
        if (seen || maybe) continue;
        findings.push_back({"vulkan devices", FindingStatus::problem,
                            std::string(to_string(gpu.vendor)) + " " + to_string(gpu.address) +
                                " is on the bus with the driver " + gpu.driver + ", but Vulkan does not see it",
                            driver_remedy({gpu}) + "; then the permissions above"});
    }
    const bool matrices =
        std::ranges::any_of(*devices, [](const VulkanDevice& device) { return device.cooperative_matrix; });
    if (!machine.build.cooperative_matrices) {
        findings.push_back({"shaders", FindingStatus::warning,
                            std::string("built by a glslc that does not know cooperative matrices") +
                                (matrices ? ", which a GPU here has: reading prompts is slower than it could be" : ""),
                            "unset ONEBIT_SHADER_TOOLS and run make build, which fetches one that does"});
    } else {
        findings.push_back({"shaders", FindingStatus::ok, "with cooperative matrices", ""});
    }
    return *devices;
}

void check_engine(const Machine& machine, const std::vector<VulkanDevice>& seen, Findings& findings) {
    if (!machine.engine_devices) return;
    const auto names = machine.engine_devices();
    if (!names.ok()) {
        findings.push_back({"engine devices", FindingStatus::problem, names.error().message(),
                            "GGML_DISABLE_VULKAN=1 1bit devices tells whether Vulkan is at fault; serve works without "
                            "it on the CPU"});
        return;
    }
    findings.push_back({"engine devices", FindingStatus::ok, *names, ""});
    for (size_t i = 0; i < seen.size(); i++) {
        const VulkanDevice& device = seen[i];
        const std::string listed_as = device.on_cpu ? kSoftware : device.pci ? to_string(*device.pci) : device.name;
        const bool listed = names->find(listed_as) != std::string::npos;
        if (listed) continue;
        if (device.on_cpu) {
            // llama.cpp counts the devices as Vulkan lists them
            const bool off = machine.environment.contains("GGML_DISABLE_VULKAN");
            findings.push_back({"engine devices", FindingStatus::ok,
                                "the engine leaves out " + device.name +
                                    ", which is slower than the CPU backend; for a test of Vulkan: " +
                                    (off ? "env -u GGML_DISABLE_VULKAN " : "") +
                                    "GGML_VK_VISIBLE_DEVICES=" + std::to_string(i) + " 1bit serve --device Vulkan0",
                                ""});
            continue;
        }
        std::string variables;
        for (const char* name : {"GGML_VK_VISIBLE_DEVICES", "GGML_DISABLE_VULKAN"}) {
            if (!variable(machine, name).empty()) variables += std::string(variables.empty() ? "" : " ") + name;
        }
        findings.push_back(
            {"engine devices", FindingStatus::warning, "Vulkan sees " + device.name + ", but the engine leaves it out",
             variables.empty() ? "1bit devices --verbose says why (too old for it, or a second driver of one GPU)"
                               : "unset " + variables});
    }
}

}  // namespace onebit
