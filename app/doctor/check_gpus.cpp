#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <system_error>

#include "app/doctor/checks.h"
#include "engine/devices_host.h"
#include "engine/devices_text.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> list;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        list.push_back(it->path());
    std::sort(list.begin(), list.end());
    return list;
}

std::string group_name(const Machine& machine, uint64_t gid) {
    std::istringstream lines(read_small_file(machine.root + "/etc/group"));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string name, password, number;
        if (std::getline(fields, name, ':') && std::getline(fields, password, ':') &&
            std::getline(fields, number, ':') && number == std::to_string(gid)) {
            return name;
        }
    }
    return {};
}

std::string join_group_remedy(const Machine& machine, const std::string& group, uint64_t gid) {
    if (in_container(machine)) {
        return "start the container with --group-add " + std::to_string(gid) +
               " (docker, podman), or as a user of that group";
    }
    const std::string user = machine.user.empty() ? "$USER" : machine.user;
    if (group.empty()) {
        return "sudo groupadd -g " + std::to_string(gid) + " gpu && sudo usermod -aG gpu " + user +
               ", then log in again";
    }
    return "sudo usermod -aG " + group + " " + user + ", then log in again";
}

// Adds a finding on whether this user may use a device file.
void check_file(const Machine& machine, const fs::path& file, FindingStatus if_denied, Findings& findings) {
    const std::string name = "/" + file.lexically_relative(machine.root.empty() ? "/" : machine.root).string();
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return;
    const std::string group = group_name(machine, info.st_gid);
    const std::string owner =
        (group.empty() ? "a group without a name here" : "group " + group) + ", gid " + std::to_string(info.st_gid);
    if (machine.may_open(file.string())) {
        findings.push_back({"permission " + name, FindingStatus::ok, "may be used (" + owner + ")", ""});
    } else {
        findings.push_back({"permission " + name, if_denied,
                            "no permission on " + file.filename().string() + " (" + owner + ")",
                            join_group_remedy(machine, group, info.st_gid)});
    }
}

bool has_driver(const std::vector<PciGpu>& gpus, const std::string& driver) {
    return std::ranges::any_of(gpus, [&driver](const PciGpu& gpu) { return gpu.driver == driver; });
}

std::string driver_remedy(GpuVendor vendor) {
    switch (vendor) {
        case GpuVendor::amd:
            return "sudo modprobe amdgpu; if that fails: sudo apt-get install firmware-amd-graphics, and see dmesg";
        case GpuVendor::nvidia:
            return "install NVIDIA's driver: sudo apt-get install nvidia-driver, then restart the machine";
        case GpuVendor::intel:
            return "sudo modprobe i915 (or xe for the newest), and see dmesg";
    }
    return {};
}

}  // namespace

const char* to_string(GpuVendor vendor) {
    switch (vendor) {
        case GpuVendor::amd:
            return "AMD";
        case GpuVendor::nvidia:
            return "NVIDIA";
        case GpuVendor::intel:
            return "Intel";
    }
    return "";
}

bool in_container(const Machine& machine) {
    std::error_code ignored;
    return fs::exists(machine.root + "/.dockerenv", ignored) ||
           fs::exists(machine.root + "/run/.containerenv", ignored);
}

std::vector<PciGpu> pci_gpus(const Machine& machine) {
    std::vector<PciGpu> gpus;
    for (const fs::path& folder : entries(machine.root + "/sys/bus/pci/devices")) {
        const auto address = parse_pci_address(folder.filename().string());
        if (!address.ok()) continue;
        const std::string kind = read_small_file((folder / "class").string());
        if (!kind.starts_with("0x03") && !kind.starts_with("0x12")) continue;
        const std::string vendor = read_small_file((folder / "vendor").string());
        PciGpu gpu;
        gpu.address = *address;
        if (vendor.starts_with("0x1002"))
            gpu.vendor = GpuVendor::amd;
        else if (vendor.starts_with("0x10de"))
            gpu.vendor = GpuVendor::nvidia;
        else if (vendor.starts_with("0x8086"))
            gpu.vendor = GpuVendor::intel;
        else
            continue;
        std::error_code error;
        const fs::path driver = fs::read_symlink(folder / "driver", error);
        if (!error) gpu.driver = driver.filename().string();
        gpus.push_back(gpu);
    }
    return gpus;
}

void check_gpus(const std::vector<PciGpu>& gpus, Findings& findings) {
    if (gpus.empty()) {
        findings.push_back({"gpu", FindingStatus::ok,
                            "no GPU of AMD, NVIDIA or Intel on the PCI bus: everything runs on the CPU", ""});
    }
    for (const PciGpu& gpu : gpus) {
        const std::string name = std::string(to_string(gpu.vendor)) + " " + to_string(gpu.address);
        if (gpu.driver.empty()) {
            findings.push_back(
                {"gpu", FindingStatus::problem, name + " has no kernel driver", driver_remedy(gpu.vendor)});
        } else if (gpu.driver.starts_with("vfio") || gpu.driver == "pci-stub") {
            findings.push_back({"gpu", FindingStatus::warning,
                                name + " is reserved for a virtual machine (driver " + gpu.driver + ")",
                                "take it back from " + gpu.driver + " if it is to be used here"});
        } else if (gpu.driver == "nouveau" || gpu.driver == "radeon") {
            findings.push_back({"gpu", FindingStatus::warning,
                                name + " has the driver " + gpu.driver + ", which computes slowly or not at all",
                                driver_remedy(gpu.vendor)});
        } else {
            findings.push_back({"gpu", FindingStatus::ok, name + ", kernel driver " + gpu.driver, ""});
        }
    }
}

void check_device_files(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings) {
    const bool amd = has_driver(gpus, "amdgpu");
    const bool mesa = amd || has_driver(gpus, "i915") || has_driver(gpus, "xe") || has_driver(gpus, "nouveau");
    size_t render_nodes = 0;
    for (const fs::path& file : entries(machine.root + "/dev/dri")) {
        if (!file.filename().string().starts_with("renderD")) continue;
        render_nodes++;
        check_file(machine, file, mesa ? FindingStatus::problem : FindingStatus::warning, findings);
    }
    if (mesa && render_nodes == 0) {
        findings.push_back(
            {"permission /dev/dri", FindingStatus::problem, "no /dev/dri/renderD* although a GPU has its driver",
             in_container(machine) ? "start the container with --device /dev/dri"
                                   : "see dmesg for why the driver made none; restart the machine after an update"});
    }
    const std::string kfd = machine.root + "/dev/kfd";
    std::error_code ignored;
    if (fs::exists(kfd, ignored)) {
        check_file(machine, kfd, FindingStatus::warning, findings);
    } else if (amd) {
        findings.push_back({"permission /dev/kfd", FindingStatus::warning,
                            "no /dev/kfd: only Vulkan can use the AMD GPU",
                            in_container(machine) ? "start the container with --device /dev/kfd"
                                                  : "use a kernel with CONFIG_HSA_AMD"});
    }
    if (!has_driver(gpus, "nvidia")) return;
    size_t nodes = 0;
    for (const fs::path& file : entries(machine.root + "/dev")) {
        const std::string name = file.filename().string();
        if (!name.starts_with("nvidia") || name.find_first_of("0123456789") != 6) continue;
        nodes++;
        check_file(machine, file, FindingStatus::problem, findings);
    }
    if (nodes == 0) {
        findings.push_back({"permission /dev/nvidia", FindingStatus::problem,
                            "no /dev/nvidia0 although the GPU has its driver",
                            in_container(machine) ? "start the container with --gpus all (NVIDIA's container toolkit)"
                                                  : "sudo nvidia-modprobe -u -c=0"});
    }
}

void check_gtt(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings) {
    constexpr uint64_t GiB = 1ull << 30;
    const uint64_t memory = read_host_memory(machine.root).total;
    const auto page = static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 4096L));
    bool any = false;
    for (const PciGpu& gpu : gpus) {
        if (gpu.driver != "amdgpu") continue;
        const std::string folder = machine.root + "/sys/bus/pci/devices/" + to_string(gpu.address) + "/mem_info_";
        const uint64_t gtt = read_number_file(folder + "gtt_total"), vram = read_number_file(folder + "vram_total");
        const std::string maker = read_small_file(folder + "vram_vendor");
        const bool own_memory = !maker.empty() && !maker.starts_with("unknown");
        if (gtt == 0 || memory == 0 || own_memory || vram > gtt) continue;
        any = true;
        // enough is left for the system: an eighth, at least 4 and at most 16 GiB
        const uint64_t reserve = std::clamp(memory / 8, 4 * GiB, 16 * GiB);
        const uint64_t sensible = memory > reserve + GiB ? memory - reserve : memory / 2;
        const uint64_t wanted = machine.wanted_gtt_bytes.value_or(sensible / GiB * GiB);
        const uint64_t pages = (wanted + page - 1) / page;
        const std::string limit = read_small_file(machine.root + "/sys/module/ttm/parameters/pages_limit");
        const std::string now =
            "the GPU can reach " + bytes_text(gtt) + " of the machine's " + bytes_text(memory) +
            " besides its carve-out of " + bytes_text(vram) +
            (limit.empty()
                 ? ""
                 : " (ttm.pages_limit is " +
                       std::to_string(read_number_file(machine.root + "/sys/module/ttm/parameters/pages_limit")) + ")");
        const std::string how = "for " + bytes_text(wanted) + ": add ttm.pages_limit=" + std::to_string(pages) +
                                " to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then sudo update-grub and restart"
                                " (amdgpu.gttsize is not needed)";
        if (wanted > memory) {
            findings.push_back({"gtt " + to_string(gpu.address), FindingStatus::problem,
                                "wanted " + bytes_text(wanted) + ", but the machine has " + bytes_text(memory),
                                "take at most " + bytes_text(sensible)});
        } else if (gtt < wanted) {
            findings.push_back({"gtt " + to_string(gpu.address), FindingStatus::warning, now, how});
        } else {
            findings.push_back({"gtt " + to_string(gpu.address), FindingStatus::ok, now, ""});
        }
    }
    if (!any && machine.wanted_gtt_bytes)
        findings.push_back({"gtt", FindingStatus::warning,
                            "--gtt is ignored: there is no integrated AMD GPU with amdgpu", "leave --gtt out"});
}

}  // namespace onebit
