// What a device is, so that one physical GPU seen through two backends is recognised as one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

struct PciAddress {
    uint32_t domain = 0;
    uint8_t bus = 0, device = 0, function = 0;
    bool operator==(const PciAddress&) const = default;
};

// "0000:c4:00.0"; the domain may be left out ("c4:00.0"). Error usage for anything else.
Result<PciAddress> parse_pci_address(std::string_view text);
std::string to_string(const PciAddress& address);

using DeviceUuid = std::array<uint8_t, 16>;
// 32 hexadecimal digits, with or without dashes and an optional prefix "GPU-".
Result<DeviceUuid> parse_device_uuid(std::string_view text);
std::string to_string(const DeviceUuid& uuid);

struct DeviceId {
    std::string backend;  // ggml's name of the backend: "Vulkan", "CUDA", "HRX", "CPU"
    std::string name;     // ggml's name of the device: "Vulkan0"
    std::optional<PciAddress> pci;
    std::optional<DeviceUuid> uuid;

    // The same piece of hardware: equal PCI addresses, or equal UUIDs where an address is missing.
    // Two devices without either are the same only if their names are equal. A UUID of zeros counts as missing.
    bool same_hardware(const DeviceId& other) const;
};

}  // namespace onebit
