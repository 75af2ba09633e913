// `1bit devices`: the machine's devices, one entry for each piece of hardware.
#include "engine/devices.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "app/command.h"
#include "app/doctor/probe.h"
#include "app/output.h"

namespace onebit {
namespace {

constexpr std::chrono::seconds driver_limit{90};

ProbeResult list_in_child(bool json, bool without_vulkan) {
    return run_probe(
        [=](std::string* output) {
            if (without_vulkan) setenv("GGML_DISABLE_VULKAN", "1", 1);
            const auto devices = list_devices();
            if (!devices.ok()) {
                *output = devices.error().message();
                return 1;
            }
            *output = json ? devices_to_json(*devices) : devices_to_text(*devices);
            return 0;
        },
        driver_limit);
}

int run_devices(bool json) {
    const ProbeResult all = list_in_child(json, false);
    if (all.ok()) {
        print(all.output);
        // a driver that leaves a device out says so here only
        std::fwrite(all.error_tail.data(), 1, all.error_tail.size(), stderr);
        return 0;
    }
    const std::string reason = all.code == 1 && !all.output.empty() ? all.output : "the drivers' probe " + all.reason();
    // the others are still of use, and that they work tells whose fault it is
    const ProbeResult others = list_in_child(json, true);
    if (!others.ok())
        return report({ErrorCode::unavailable, "devices", "a list from the drivers", reason, "1bit doctor"});
    print(others.output);
    report({ErrorCode::unavailable, "Vulkan devices", "a list from the driver", reason,
            "the list is without them; 1bit doctor tells more"});
    return 1;
}

}  // namespace

void add_devices(CLI::App& app, CommandRun* run) {
    auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("devices", "List GPUs and the CPU, with their backends and memory.");
    command->add_flag("--json", *json, "Print JSON; \"device\" is the name that --device takes");
    command->footer(
        "Examples:\n"
        "  1bit devices\n"
        "  1bit devices --json\n"
        "Software Vulkan is only listed when GGML_VK_VISIBLE_DEVICES names it, and never chosen by itself.");
    command->callback([json, run] { *run = [json] { return run_devices(*json); }; });
}

}  // namespace onebit
