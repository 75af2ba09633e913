#include "app/device_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/supervisor/run_program.h"

namespace onebit {
namespace {

constexpr std::chrono::seconds kLimit{60};  // a cold driver may compile for a while

std::optional<DeviceKind> kind_of(const std::string& name) {
    for (DeviceKind kind : {DeviceKind::cpu, DeviceKind::integrated_gpu, DeviceKind::discrete_gpu,
                            DeviceKind::software_gpu, DeviceKind::accelerator})
        if (name == to_string(kind)) return kind;
    return std::nullopt;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return text;
}

std::string text_of(const nlohmann::json& object, const char* key) {
    auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string tail_of(const std::string& text) {
    std::string tail = text.size() > 400 ? text.substr(text.size() - 400) : text;
    return printable(tail);
}

}  // namespace

Result<std::vector<PhysicalDevice>> parse_devices(std::string_view json) {
    const Error wrong{ErrorCode::invalid, "1bit devices --json", "a list of devices", "something else",
                      "run it by hand to see"};
    nlohmann::json root = nlohmann::json::parse(json, nullptr, false);
    if (!root.is_object() || !root.contains("devices") || !root["devices"].is_array()) return wrong;
    std::vector<PhysicalDevice> devices;
    for (const auto& item : root["devices"]) {
        if (!item.is_object() || !item.contains("backends") || !item["backends"].is_array()) return wrong;
        PhysicalDevice device;
        std::optional<DeviceKind> kind = kind_of(text_of(item, "kind"));
        if (!kind) return wrong;
        device.name = text_of(item, "name");
        device.kind = *kind;
        device.chosen_by_default = item.contains("chosen_by_default") && item["chosen_by_default"] == true;
        for (const auto& backend : item["backends"]) {
            if (!backend.is_object()) return wrong;
            BackendView view;
            view.id.name = text_of(backend, "device");
            view.id.backend = text_of(backend, "backend");
            view.driver = text_of(backend, "driver");
            if (view.id.name.empty()) return wrong;
            if (Result<PciAddress> pci = parse_pci_address(text_of(backend, "pci")); pci.ok()) view.id.pci = *pci;
            device.backends.push_back(std::move(view));
        }
        devices.push_back(std::move(device));
    }
    return devices;
}

Result<std::vector<PhysicalDevice>> ask_devices(const std::filesystem::path& program) {
    Result<ProgramResult> asked = run_program(program, {"devices", "--json"}, kLimit);
    if (!asked) return asked.error();
    if (asked->exit_code == 0) return parse_devices(asked->output);
    std::string said = tail_of(asked->error_output);
    return Error{ErrorCode::unavailable, "devices", "a list of this machine's devices",
                 "'1bit devices' ended with " + asked->outcome() + (said.empty() ? "" : ": " + said),
                 "see 1bit doctor; --device cpu asks no driver"};
}

Result<std::vector<std::string>> ggml_names(const std::vector<std::string>& wanted,
                                            const std::vector<PhysicalDevice>& devices) {
    if (cpu_only(wanted)) return std::vector<std::string>{"CPU"};
    std::string list;
    for (const std::string& name : wanted) list += (list.empty() ? "" : ",") + name;
    if (!wanted.empty() && list.empty())
        return Error{ErrorCode::usage, "--device", "the name of a device", "nothing", "see 1bit devices"};
    Result<std::vector<std::string>> names = select_devices(list, devices);
    if (!names) return names;
    // the CPU takes part in any case: beside a GPU it needs no name
    if (names->size() > 1) std::erase(*names, "CPU");
    if (names->empty()) names->push_back("CPU");
    return names;
}

bool left_open(const std::vector<std::string>& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [](const std::string& name) { return lower(name) == "auto"; });
}

void note_devices(ServeConfig& config, bool left_open, const std::vector<PhysicalDevice>& devices) {
    for (const PhysicalDevice& device : devices)
        for (const BackendView& view : device.backends)
            config.device_identities[view.id.name] = device_identity(devices, view.id.name);
    if (!left_open || !config.defaults.prefill_device.empty()) return;
    config.defaults.open_devices = default_backends(devices);
}

Result<void> settle_excluded(ServeConfig& config, const std::vector<PhysicalDevice>& devices) {
    for (auto& [member, reason] : config.defaults.excluded) {
        if (devices.empty() && !cpu_only({member})) continue;
        Result<std::vector<std::string>> names = ggml_names({member}, devices);
        if (!names) return names.error();
        member = names->front();
    }
    return {};
}

bool cpu_only(const std::vector<std::string>& wanted) {
    return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [](const std::string& name) {
        return lower(name) == "cpu" || lower(name) == "none";
    });
}

}  // namespace onebit
