#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/devices.h"
#include "engine/devices_host.h"
#include "engine/route_table.h"

namespace onebit {
namespace {

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

struct AmdMemory {
    uint64_t vram_total = 0, vram_used = 0, gtt_total = 0, gtt_used = 0;
    std::string vendor;  // of the memory chips; amdgpu says "unknown" for a carve-out
    bool known() const { return vram_total != 0 || gtt_total != 0; }
};

AmdMemory read_amd_memory(const std::string& sysfs, const PciAddress& address) {
    const std::string folder = sysfs + "/bus/pci/devices/" + to_string(address) + "/mem_info_";
    AmdMemory memory;
    memory.vram_total = read_number_file(folder + "vram_total");
    memory.vram_used = std::min(read_number_file(folder + "vram_used"), memory.vram_total);
    memory.gtt_total = read_number_file(folder + "gtt_total");
    memory.gtt_used = std::min(read_number_file(folder + "gtt_used"), memory.gtt_total);
    memory.vendor = read_small_file(folder + "vram_vendor");
    while (!memory.vendor.empty() && std::isspace(static_cast<unsigned char>(memory.vendor.back()))) {
        memory.vendor.pop_back();
    }
    return memory;
}

// Some drivers call an APU a discrete GPU. A real one names the maker of its memory and has more of it.
bool looks_integrated(const AmdMemory& memory) {
    constexpr uint64_t largest_usual_carve_out = 8ull << 30;
    return memory.known() && (memory.vendor.empty() || memory.vendor == "unknown") &&
           memory.vram_total <= largest_usual_carve_out && memory.gtt_total / 2 >= memory.vram_total;
}

// Zero is how a driver says that it does not know.
void set_memory(const RawDevice& raw, BackendView& view) {
    if (raw.total_bytes == 0) return;
    view.total_bytes = raw.total_bytes;
    if (raw.free_bytes == 0) return;
    // a budget that is already overdrawn wraps below zero in ggml-vulkan
    const bool wrapped = raw.free_bytes > UINT64_MAX / 2;
    view.free_bytes = wrapped ? 0 : std::min(raw.free_bytes, raw.total_bytes);
}

DeviceKind kind_of(const RawDevice& raw) {
    return raw.kind != DeviceKind::cpu && is_software_vulkan(raw.description) ? DeviceKind::software_gpu : raw.kind;
}

void finish_memory(PhysicalDevice& device) {
    for (const BackendView& view : device.backends) {
        if (view.total_bytes) device.total_bytes = std::max(device.total_bytes.value_or(0), *view.total_bytes);
        if (view.free_bytes) device.free_bytes = std::min(device.free_bytes.value_or(UINT64_MAX), *view.free_bytes);
    }
    if (device.total_bytes && device.free_bytes) device.free_bytes = std::min(*device.free_bytes, *device.total_bytes);
    if (!device.total_bytes) device.free_bytes.reset();
}

void apply_amd_pool(PhysicalDevice& device, const AmdMemory& memory, std::optional<uint64_t> host_free) {
    device.kind = DeviceKind::integrated_gpu;
    device.carve_out_bytes = memory.vram_total;
    device.shared_bytes = memory.gtt_total;
    device.total_bytes = memory.vram_total + memory.gtt_total;
    uint64_t shared_free = memory.gtt_total - memory.gtt_used;
    // the shared part is the machine's own memory: what others use of that is gone
    if (host_free) shared_free = std::min(shared_free, *host_free);
    device.free_bytes = memory.vram_total - memory.vram_used + shared_free;
}

void choose_defaults(std::vector<PhysicalDevice>& devices) {
    bool any = false;
    for (PhysicalDevice& device : devices) {
        device.chosen_by_default = device.kind == DeviceKind::discrete_gpu;
        any = any || device.chosen_by_default;
    }
    for (const DeviceKind kind : {DeviceKind::integrated_gpu, DeviceKind::cpu}) {
        if (any) return;
        const auto found = std::find_if(devices.begin(), devices.end(),
                                        [kind](const PhysicalDevice& device) { return device.kind == kind; });
        if (found != devices.end()) any = found->chosen_by_default = true;
    }
}

}  // namespace

const char* to_string(DeviceKind kind) {
    switch (kind) {
        case DeviceKind::cpu:
            return "cpu";
        case DeviceKind::integrated_gpu:
            return "integrated_gpu";
        case DeviceKind::discrete_gpu:
            return "discrete_gpu";
        case DeviceKind::software_gpu:
            return "software_gpu";
        case DeviceKind::accelerator:
            return "accelerator";
    }
    return "unknown";
}

bool is_software_vulkan(const std::string& description) {
    const std::string text = lower(description);
    return std::ranges::any_of(std::initializer_list<const char*>{"llvmpipe", "lavapipe", "swiftshader", "softpipe"},
                               [&text](const char* name) { return text.find(name) != std::string::npos; });
}

std::vector<PhysicalDevice> group_devices(const std::vector<RawDevice>& raw, const std::string& sysfs) {
    std::vector<PhysicalDevice> devices;
    std::optional<uint64_t> host_free;
    for (const RawDevice& one : raw) {
        BackendView view{one.id, one.driver, {}, {}};
        set_memory(one, view);
        const DeviceKind kind = kind_of(one);
        if (kind == DeviceKind::cpu && view.free_bytes) host_free = view.free_bytes;
        const auto same = std::find_if(devices.begin(), devices.end(), [&](const PhysicalDevice& device) {
            return std::ranges::any_of(device.backends,
                                       [&](const BackendView& known) { return known.id.same_hardware(one.id); });
        });
        if (same != devices.end()) {
            // one backend is enough to know that its memory is the machine's
            if (kind == DeviceKind::integrated_gpu) same->kind = kind;
            same->backends.push_back(std::move(view));
            continue;
        }
        PhysicalDevice device;
        device.name = one.description.empty() ? one.id.name : one.description;
        device.kind = kind;
        if (kind == DeviceKind::software_gpu) {
            device.note = device.name + ": software Vulkan, runs on the CPU, for tests";
            device.name = "CPU (software Vulkan)";
        }
        device.backends.push_back(std::move(view));
        devices.push_back(std::move(device));
    }

    for (PhysicalDevice& device : devices) {
        finish_memory(device);
        const bool gpu = device.kind == DeviceKind::integrated_gpu || device.kind == DeviceKind::discrete_gpu;
        for (const BackendView& view : device.backends) {
            if (!gpu || !view.id.pci) continue;
            const AmdMemory memory = read_amd_memory(sysfs, *view.id.pci);
            if (memory.known() && (device.kind == DeviceKind::integrated_gpu || looks_integrated(memory))) {
                apply_amd_pool(device, memory, host_free);
            }
            break;
        }
        if (!device.total_bytes && gpu) device.note = "the driver does not say how much memory it has";
    }
    std::stable_partition(devices.begin(), devices.end(),
                          [](const PhysicalDevice& device) { return device.kind == DeviceKind::cpu; });
    choose_defaults(devices);
    return devices;
}

std::vector<std::string> default_devices(const std::vector<PhysicalDevice>& devices) {
    std::vector<std::string> names;
    for (const PhysicalDevice& device : devices) {
        if (device.chosen_by_default && device.kind != DeviceKind::cpu && !device.backends.empty()) {
            names.push_back(device.backends.front().id.name);
        }
    }
    return names;
}

std::vector<std::string> default_backends(const std::vector<PhysicalDevice>& devices) {
    std::vector<std::string> names;
    for (const PhysicalDevice& device : devices) {
        if (!device.chosen_by_default || device.kind == DeviceKind::cpu) continue;
        if (!names.empty()) return {};
        for (const BackendView& view : device.backends) names.push_back(view.id.name);
    }
    return names;
}

std::string device_identity(const std::vector<PhysicalDevice>& devices, const std::string& ggml_name) {
    for (const PhysicalDevice& device : devices)
        for (const BackendView& view : device.backends)
            if (view.id.name == ggml_name) return route_identity(ggml_name, device.name, view.driver);
    return route_identity(ggml_name, "", "");
}

namespace {

std::string list_of_names(const std::vector<PhysicalDevice>& devices) {
    std::string text;
    for (const PhysicalDevice& device : devices) {
        for (const BackendView& view : device.backends) text += (text.empty() ? "" : ", ") + view.id.name;
    }
    return text.empty() ? "none" : text;
}

// Empty when there is no such device.
std::string find_one(const std::string& wanted, const std::vector<PhysicalDevice>& devices) {
    size_t index = 0;
    const auto number = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
    if (number.ec == std::errc() && number.ptr == wanted.data() + wanted.size()) {
        return index < devices.size() ? devices[index].backends.front().id.name : "";
    }
    const auto address = parse_pci_address(wanted);
    std::string software;
    for (const PhysicalDevice& device : devices) {
        for (const BackendView& view : device.backends) {
            if (lower(view.id.name) == lower(wanted)) return view.id.name;
            if (address.ok() && view.id.pci == *address) return view.id.name;
        }
    }
    for (const PhysicalDevice& device : devices) {
        for (const BackendView& view : device.backends) {
            if (lower(view.id.backend) != lower(wanted)) continue;
            if (device.kind != DeviceKind::software_gpu) return view.id.name;
            if (software.empty()) software = view.id.name;
        }
    }
    return software;
}

}  // namespace

Result<std::vector<std::string>> select_devices(const std::string& wanted, const std::vector<PhysicalDevice>& devices) {
    if (wanted.empty() || lower(wanted) == "auto") return default_devices(devices);
    std::vector<std::string> names;
    for (size_t start = 0; start <= wanted.size();) {
        const size_t end = std::min(wanted.find(',', start), wanted.size());
        const std::string item = wanted.substr(start, end - start);
        start = end + 1;
        if (item.empty()) {
            return Error{ErrorCode::usage, "--device", "names of devices separated by commas", "'" + wanted + "'",
                         "see 1bit devices"};
        }
        const std::string name = lower(item) == "none" ? "CPU" : find_one(item, devices);
        if (name.empty()) {
            return Error{ErrorCode::not_found, "device '" + item + "'", "one of " + list_of_names(devices), "none such",
                         "see 1bit devices, and 1bit doctor when one is missing"};
        }
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

std::string device_line(const std::vector<PhysicalDevice>& devices, const std::string& ggml_name) {
    for (const PhysicalDevice& device : devices) {
        for (const BackendView& view : device.backends) {
            if (view.id.name != ggml_name) continue;
            return ggml_name + " (" + device.name + (view.id.pci ? ", " + to_string(*view.id.pci) : "") + ")";
        }
    }
    return ggml_name;
}

}  // namespace onebit
