#include "base/device_id.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace onebit {

namespace {

// Only hexadecimal digits, as many as the text has: from_chars alone would take a shorter prefix.
template <typename T>
bool parse_hex(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc() && !text.empty() && text[0] != '-' && end == text.data() + text.size();
}

// An error message repeats what was given, but not a megabyte of it.
std::string quoted(std::string_view text) {
    constexpr size_t most = 80;
    if (text.size() <= most) return "'" + std::string(text) + "'";
    return "'" + std::string(text.substr(0, most)) + "...' (" + std::to_string(text.size()) + " bytes)";
}

bool is_set(const std::optional<DeviceUuid>& uuid) { return uuid && *uuid != DeviceUuid{}; }

}  // namespace

Result<PciAddress> parse_pci_address(std::string_view text) {
    const Error error{ErrorCode::usage, "PCI address",
                      "DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal, such as 0000:c4:00.0", quoted(text),
                      "lspci -D lists the addresses of this machine"};
    constexpr size_t short_length = 7;  // "c4:00.0"
    if (text.size() < short_length) return error;
    PciAddress address;
    const std::string_view domain = text.substr(0, text.size() - short_length);
    const std::string_view rest = text.substr(domain.size());
    if (!domain.empty()) {
        // 4 digits as a rule, 5 behind Intel VMD, 8 from CUDA
        if (domain.size() < 5 || domain.size() > 9 || domain.back() != ':') return error;
        if (!parse_hex(domain.substr(0, domain.size() - 1), address.domain)) return error;
    }
    if (rest[2] != ':' || rest[5] != '.') return error;
    if (!parse_hex(rest.substr(0, 2), address.bus)) return error;
    if (!parse_hex(rest.substr(3, 2), address.device) || address.device > 0x1F) return error;
    if (!parse_hex(rest.substr(6, 1), address.function) || address.function > 7) return error;
    return address;
}

std::string to_string(const PciAddress& address) {
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", address.domain, address.bus, address.device,
                  address.function);
    return text;
}

Result<DeviceUuid> parse_device_uuid(std::string_view text) {
    const Error error{ErrorCode::usage, "device UUID",
                      "32 hexadecimal digits, such as GPU-01234567-89ab-cdef-0123-456789abcdef", quoted(text),
                      "1bit devices lists the UUIDs of this machine"};
    constexpr std::string_view prefix = "GPU-";
    std::string_view rest = text;
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
    const bool dashed = rest.size() == 36;
    if (!dashed && rest.size() != 32) return error;
    std::string digits;
    for (size_t i = 0; i < rest.size(); i++) {
        if (dashed && (i == 8 || i == 13 || i == 18 || i == 23)) {
            if (rest[i] != '-') return error;
        } else {
            digits += rest[i];
        }
    }
    DeviceUuid uuid{};
    for (size_t i = 0; i < uuid.size(); i++) {
        if (!parse_hex(std::string_view(digits).substr(2 * i, 2), uuid[i])) return error;
    }
    return uuid;
}

std::string to_string(const DeviceUuid& uuid) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < uuid.size(); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += digits[uuid[i] >> 4];
        text += digits[uuid[i] & 0x0F];
    }
    return text;
}

bool DeviceId::same_hardware(const DeviceId& other) const {
    if (pci && other.pci) return *pci == *other.pci;
    if (is_set(uuid) && is_set(other.uuid)) return *uuid == *other.uuid;
    const bool nameless = !pci && !other.pci && !is_set(uuid) && !is_set(other.uuid);
    return nameless && name == other.name;
}

}  // namespace onebit
