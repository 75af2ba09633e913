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
    std::string driver;                      // name and version, or empty
    std::optional<uint64_t> total_bytes, free_bytes;  // unset: the driver does not say
};

struct PhysicalDevice {
    std::string name;
    DeviceKind kind = DeviceKind::cpu;
    std::vector<BackendView> backends;
    std::optional<uint64_t> total_bytes, free_bytes;       // free <= total; one pool on an APU: carve-out + GTT
    std::optional<uint64_t> carve_out_bytes, shared_bytes;  // the parts of it on an APU
    bool chosen_by_default = false;          // software GPUs never are
    std::string note;                        // such as "software Vulkan: runs on the CPU, for tests"
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

}  // namespace onebit
