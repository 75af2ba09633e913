// The machine's devices: one physical GPU is one entry with its backends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device_id.h"
#include "base/result.h"

namespace onebit {

enum class DeviceKind { cpu, integrated_gpu, discrete_gpu, software_gpu, accelerator };
const char* to_string(DeviceKind kind);

struct BackendView {
    DeviceId id;
    std::string driver;                               // name and version, or empty
    std::optional<uint64_t> total_bytes, free_bytes;  // unset: the driver does not say
};

struct PhysicalDevice {
    std::string name;
    DeviceKind kind = DeviceKind::cpu;
    std::vector<BackendView> backends;
    std::optional<uint64_t> total_bytes, free_bytes;        // free <= total; one pool on an APU: carve-out + GTT
    std::optional<uint64_t> carve_out_bytes, shared_bytes;  // the parts of it on an APU
    bool chosen_by_default = false;                         // software GPUs never are
    std::string note;                                       // such as "software Vulkan: runs on the CPU, for tests"
};

// sysfs: root of /sys, replaceable for tests. Software Vulkan is only listed when GGML_VK_VISIBLE_DEVICES names it.
// Initialises drivers: call it in a process that may be lost. The CPU is always first.
Result<std::vector<PhysicalDevice>> list_devices(const std::string& sysfs = "/sys");

// The grouping and memory rules alone, for tests: views as the backends report them.
struct RawDevice {
    DeviceId id;
    std::string description, driver;
    DeviceKind kind = DeviceKind::discrete_gpu;
    uint64_t total_bytes = 0, free_bytes = 0;
};
std::vector<PhysicalDevice> group_devices(const std::vector<RawDevice>& raw, const std::string& sysfs);

// ggml names of the devices to use when the user names none: every discrete GPU, else the integrated one, one backend
// of each; empty when there is no GPU but the CPU (and software Vulkan, which is never chosen by itself).
std::vector<std::string> default_devices(const std::vector<PhysicalDevice>& devices);

// The backends of the one GPU that is used when the user names none, by ggml names, the default first: two or more when
// a route may choose between them; fewer when several GPUs are used, or none.
std::vector<std::string> default_backends(const std::vector<PhysicalDevice>& devices);

// What a stored route knows a device by: its name, its hardware and its driver. The name alone when it is not there.
std::string device_identity(const std::vector<PhysicalDevice>& devices, const std::string& ggml_name);

// What the user asked for as ggml names: a list separated by commas of ggml names ("Vulkan0"), backends ("vulkan"),
// PCI addresses, or indices of the list; "auto" as default_devices, "none" or "cpu" as {"CPU"}. Never replaces a device
// that is not there by another: error not_found with what there is, usage for an empty item.
Result<std::vector<std::string>> select_devices(const std::string& wanted, const std::vector<PhysicalDevice>& devices);

// "Vulkan0 (Radeon 8060S, 0000:c4:00.0)": for the log, so that nobody has to guess which GPU an index is.
std::string device_line(const std::vector<PhysicalDevice>& devices, const std::string& ggml_name);

// Whether a description is that of a Vulkan driver that runs on the CPU.
bool is_software_vulkan(const std::string& description);

// As `1bit devices` prints them. The JSON carries each backend's ggml name as "device".
std::string devices_to_text(const std::vector<PhysicalDevice>& devices);
std::string devices_to_json(const std::vector<PhysicalDevice>& devices);

}  // namespace onebit
