// `1bit doctor`: what is wrong on this machine, and the command that mends it.
#include "app/doctor/doctor.h"

#include <algorithm>

#include "app/command_line.h"
#include "app/doctor/probe.h"
#include "app/output.h"
#include "app/version.h"
#include "engine/devices.h"

namespace onebit {
namespace {

constexpr std::chrono::seconds driver_limit{90};

struct Options {
    bool json = false, report = false;
    std::optional<uint64_t> gtt_gib;
    uint16_t port = 8080;
};

Result<std::string> engine_devices_in_child() {
    const ProbeResult result = run_probe(
        [](std::string* output) {
            const auto devices = list_devices();
            if (!devices.ok()) {
                *output = devices.error().message();
                return 1;
            }
            for (const PhysicalDevice& device : *devices) {
                for (const BackendView& view : device.backends) {
                    *output += (output->empty() ? "" : ", ") + device_line(*devices, view.id.name);
                }
            }
            return 0;
        },
        driver_limit);
    if (result.ok()) return result.output + (result.error_tail.empty() ? "" : "; said meanwhile: " + result.error_tail);
    const bool told = result.ending == ProbeResult::Ending::exited && !result.output.empty();
    return Error{ErrorCode::unavailable, "the engine's devices", "a list",
                 told ? result.output : "its process " + result.reason(), ""};
}

BuildFacts build_facts() {
    const BuildInfo info = build_info();
    const auto has = [&info](const char* name) {
        return std::ranges::any_of(info.backends,
                                   [name](const std::string& one) { return CLI::detail::to_lower(one) == name; });
    };
    BuildFacts facts{
        info.version, info.llama_tag + " (" + info.llama_build + ")", info.compiler, has("vulkan"), has("cuda"), false};
#ifdef ONEBIT_COOPERATIVE_MATRICES
    facts.cooperative_matrices = true;
#endif
    return facts;
}

int run_doctor(const Options& options) {
    Machine machine = this_machine();
    machine.build = build_facts();
    machine.port = options.port;
    if (options.gtt_gib) machine.wanted_gtt_bytes = *options.gtt_gib << 30;
    machine.engine_devices = engine_devices_in_child;
    const Findings findings = examine(machine);
    print(options.json     ? findings_to_json(findings)
          : options.report ? findings_to_report(machine, findings)
                           : findings_to_text(findings));
    return any_problem(findings) ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("doctor", "Look for what keeps 1bit from its GPUs, memory or disk.");
    auto* json = command->add_flag("--json", options->json, "print JSON");
    command
        ->add_flag("--report", options->report, "print one text to paste into a report, without names and home folder")
        ->excludes(json);
    add_number(command, "--gtt", "GiB of memory that an integrated AMD GPU should reach: prints the kernel parameter",
               &options->gtt_gib, 1, 1 << 20);
    add_number(command, "--port", "the port to look at, 8080 if not given", &options->port, 1, 65535);
    command->footer(
        "Exit code: 1 when there is a problem, 0 with warnings at most.\n"
        "Examples:\n"
        "  1bit doctor\n"
        "  1bit doctor --gtt 112\n"
        "  1bit doctor --report > report.txt");
    command->callback([options, run] { *run = [options] { return run_doctor(*options); }; });
}

}  // namespace onebit
