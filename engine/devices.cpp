#include "engine/devices.h"

#include <algorithm>

#include "engine/devices_host.h"
#include "engine/devices_vulkan.h"
#include "engine/llama_log.h"
#include "ggml-backend.h"

namespace onebit {
namespace {

DeviceKind kind_of(enum ggml_backend_dev_type type) {
    switch (type) {
        case GGML_BACKEND_DEVICE_TYPE_CPU:
            return DeviceKind::cpu;
        case GGML_BACKEND_DEVICE_TYPE_IGPU:
            return DeviceKind::integrated_gpu;
        case GGML_BACKEND_DEVICE_TYPE_GPU:
            return DeviceKind::discrete_gpu;
        case GGML_BACKEND_DEVICE_TYPE_ACCEL:
        case GGML_BACKEND_DEVICE_TYPE_META:
            return DeviceKind::accelerator;
    }
    return DeviceKind::accelerator;
}

// "0000:01:00.0-v1" is how ggml-cuda names one of several virtual devices on a GPU.
std::optional<PciAddress> address_of(const char* device_id) {
    if (device_id == nullptr) return {};
    std::string text(device_id);
    text.resize(std::min(text.find("-v"), text.size()));
    auto address = parse_pci_address(text);
    return address.ok() ? std::optional(*address) : std::nullopt;
}

std::string first_line(std::string text) {
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

// Driver and UUID from Vulkan itself. Without a PCI address the name and the order among equals decide.
void add_vulkan_facts(std::vector<RawDevice>& raw, std::vector<VulkanDevice> known) {
    for (RawDevice& device : raw) {
        if (device.id.backend != "Vulkan") continue;
        const auto found = std::find_if(known.begin(), known.end(), [&device](const VulkanDevice& one) {
            return device.id.pci && one.pci ? *device.id.pci == *one.pci : device.description == one.name;
        });
        if (found == known.end()) continue;
        device.driver = found->driver + ", Vulkan " + found->api_version;
        device.id.uuid = found->uuid;
        if (found->on_cpu) device.kind = DeviceKind::software_gpu;
        known.erase(found);
    }
}

}  // namespace

Result<std::vector<PhysicalDevice>> list_devices(const std::string& sysfs) try {
    const LlamaLog log;
#ifdef GGML_BACKEND_DL
    ggml_backend_load_all();
#endif
    std::vector<RawDevice> raw;
    bool any_vulkan = false;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t handle = ggml_backend_dev_get(i);
        ggml_backend_dev_props props{};
        ggml_backend_dev_get_props(handle, &props);
        RawDevice device;
        device.id.backend = ggml_backend_reg_name(ggml_backend_dev_backend_reg(handle));
        device.id.name = props.name;
        device.id.pci = address_of(props.device_id);
        device.description = props.description != nullptr ? props.description : "";
        device.kind = kind_of(props.type);
        device.total_bytes = props.memory_total;
        device.free_bytes = props.memory_free;
        if (device.kind == DeviceKind::cpu) {
            // ggml calls all of the memory free
            const HostMemory host = read_host_memory();
            if (host.total != 0) device.total_bytes = host.total;
            device.free_bytes = host.available;
        }
        if (device.id.backend == "CUDA") {
            const std::string version = first_line(read_small_file(sysfs + "/module/nvidia/version"));
            if (!version.empty()) device.driver = "NVIDIA " + version;
        }
        any_vulkan = any_vulkan || device.id.backend == "Vulkan";
        raw.push_back(std::move(device));
    }
    if (any_vulkan) {
        auto known = query_vulkan();
        if (known.ok()) add_vulkan_facts(raw, std::move(*known));
    }
    return group_devices(raw, sysfs);
} catch (const std::exception& error) {
    return Error{ErrorCode::unavailable, "devices", "a list from the drivers", error.what(), "1bit doctor"};
}

}  // namespace onebit
