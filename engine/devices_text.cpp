#include "engine/devices_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/devices.h"

namespace onebit {
namespace {

using Json = nlohmann::ordered_json;

// Columns of UTF-8 text: continuation bytes take no place.
size_t width(const std::string& text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

Json number_or_null(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

std::string known_bytes(const std::optional<uint64_t>& value) { return value ? bytes_text(*value) : "unknown"; }

}  // namespace

std::string bytes_text(uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < std::size(units)) {
        value /= 1024;
        unit++;
    }
    char text[32];
    const bool fraction = unit != 0 && value < 99.95;
    std::snprintf(text, sizeof text, fraction ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<size_t> widths;
    for (const auto& row : rows) {
        if (row.size() > widths.size()) widths.resize(row.size());
        for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); i++) {
            const std::string space(widths[i] - width(row[i]), ' ');
            line += i == 0 ? row[i] + space : "  " + space + row[i];
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
    std::string text;
    for (size_t r = 0; r < rows.size(); r++) {
        for (const auto& cell : rows[r]) {
            std::string escaped;
            for (const char c : cell) escaped += c == '|' ? "\\|" : std::string(1, c);
            text += "| " + escaped + " ";
        }
        text += "|\n";
        if (r != 0) continue;
        for (size_t i = 0; i < rows[r].size(); i++) text += i == 0 ? "|---" : "|---:";
        text += "|\n";
    }
    return text;
}

std::string devices_to_text(const std::vector<PhysicalDevice>& devices) {
    std::string text;
    for (size_t i = 0; i < devices.size(); i++) {
        const PhysicalDevice& device = devices[i];
        text += std::to_string(i) + "  " + device.name + (device.chosen_by_default ? "  [default]" : "") + "\n";
        text += "     " + std::string(to_string(device.kind)) + ", memory " + known_bytes(device.total_bytes) +
                (device.total_bytes ? ", free " + known_bytes(device.free_bytes) : "");
        if (device.carve_out_bytes && device.shared_bytes) {
            text += " (carve-out " + bytes_text(*device.carve_out_bytes) + " + shared with the CPU " +
                    bytes_text(*device.shared_bytes) + ")";
        }
        text += "\n";
        for (const BackendView& view : device.backends) {
            text += "     --device " + view.id.name;
            if (view.id.pci) text += "  PCI " + to_string(*view.id.pci);
            if (!view.driver.empty()) text += "  " + printable(view.driver);
            text += "\n";
        }
        if (!device.note.empty()) text += "     " + printable(device.note) + "\n";
    }
    return text;
}

std::string devices_to_json(const std::vector<PhysicalDevice>& devices) {
    Json list = Json::array();
    for (size_t i = 0; i < devices.size(); i++) {
        const PhysicalDevice& device = devices[i];
        Json backends = Json::array();
        for (const BackendView& view : device.backends) {
            backends.push_back({{"device", view.id.name},
                                {"backend", view.id.backend},
                                {"pci", view.id.pci ? Json(to_string(*view.id.pci)) : Json(nullptr)},
                                {"uuid", view.id.uuid ? Json(to_string(*view.id.uuid)) : Json(nullptr)},
                                {"driver", printable(view.driver)},
                                {"total_bytes", number_or_null(view.total_bytes)},
                                {"free_bytes", number_or_null(view.free_bytes)}});
        }
        list.push_back({{"index", i},
                        {"name", printable(device.name)},
                        {"kind", to_string(device.kind)},
                        {"chosen_by_default", device.chosen_by_default},
                        {"total_bytes", number_or_null(device.total_bytes)},
                        {"free_bytes", number_or_null(device.free_bytes)},
                        {"carve_out_bytes", number_or_null(device.carve_out_bytes)},
                        {"shared_bytes", number_or_null(device.shared_bytes)},
                        {"note", printable(device.note)},
                        {"backends", std::move(backends)}});
    }
    return Json{{"devices", std::move(list)}, {"default", default_devices(devices)}}.dump(2) + "\n";
}

}  // namespace onebit
