// What Vulkan itself says about the GPUs: ggml passes on neither the driver nor the UUID.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/device_id.h"
#include "base/result.h"

namespace onebit {

struct VulkanDevice {
    std::string name;
    std::string driver;  // name and version, such as "radv Mesa 25.0.7"
    std::string api_version;
    bool on_cpu = false;  // device type CPU
    bool integrated = false;
    bool cooperative_matrix = false;  // VK_KHR_cooperative_matrix
    std::optional<PciAddress> pci;
    std::optional<DeviceUuid> uuid;
};

// Opens the loader by name, so that a machine without it is no link error. Loads every driver that is installed: call
// it in a process that may be lost. Error not_found without a loader, unavailable when it offers no driver.
Result<std::vector<VulkanDevice>> query_vulkan();

}  // namespace onebit
