// `1bit plan`: the memory a model needs on each device, and whether it fits.
#include "engine/plan.h"

#include "app/command_line.h"
#include "app/doctor/probe.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "engine/devices.h"
#include "server/config.h"
#include "server/supervisor/model_target.h"

namespace onebit {
namespace {

constexpr int does_not_fit = 3;
// the head of a large model is read from a slow disk several times
constexpr std::chrono::seconds plan_limit{600};

struct Options {
    std::string model = "builtin", device = "auto";
    PlanRequest request;
    std::optional<uint32_t> context, parallel;
    bool json = false;
};

// What serve tries, best first; where arguments of llama.cpp decide, that alone.
std::vector<SlotShape> shapes_of(const Options& options, const ModelEntry& model) {
    if (options.request.shared) return {{options.request.context, options.parallel.value_or(1)}};
    ModelTarget target;
    target.entry = model;
    target.settings.context = options.context;
    target.settings.parallel = options.parallel;
    return slot_shapes(target);
}

// Of the first that fits, or of the last.
Result<Plan> plan_of(PlanRequest request, const std::vector<SlotShape>& shapes) {
    std::vector<std::string> refused;
    for (const SlotShape& shape : shapes) {
        request.context = shape.context;
        request.parallel = shape.slots;
        Result<Plan> plan = plan_model(request);
        if (!plan.ok()) return plan;
        if (plan->fits || &shape == &shapes.back()) {
            plan->notes.insert(plan->notes.begin(), refused.begin(), refused.end());
            return plan;
        }
        refused.push_back("does not fit: " + slots_text(*plan));
    }
    return Error{ErrorCode::internal, request.model_file, "a number of slots", "none", ""};
}

std::string plan_to_text(const Plan& plan) {
    std::string text = plan.model + ", " + slots_text(plan) + "\n" + to_table(plan);
    for (const std::string& note : plan.notes) text += note + "\n";
    return text + (plan.fits ? "fits\n" : "does not fit\n");
}

// In a child: drivers are loaded, and llama.cpp aborts on some damaged models.
int plan_in_child(const Options& options, const std::vector<SlotShape>& shapes, std::string* output) {
    const auto failed = [output](const Error& error) {
        *output = error.message();
        return exit_code(error.code);
    };
    const auto devices = list_devices();
    if (!devices.ok()) return failed(devices.error());
    PlanRequest request = options.request;
    if (options.device != "auto") {
        auto chosen = select_devices(options.device, *devices);
        if (!chosen.ok()) return failed(chosen.error());
        request.devices = std::move(*chosen);
    }
    auto plan = plan_of(std::move(request), shapes);
    if (!plan.ok()) return failed(plan.error());
    plan->model = options.model;
    *output = options.json ? plan_to_json(*plan) : plan_to_text(*plan);
    return plan->fits ? 0 : does_not_fit;
}

int run_plan(Options options) {
    const auto model = find_usable_model(options.model);
    if (!model.ok()) return report(model.error());
    options.request.model_file = model->files.front().string();
    const std::vector<SlotShape> shapes = shapes_of(options, *model);
    const ProbeResult result =
        run_probe([&](std::string* output) { return plan_in_child(options, shapes, output); }, plan_limit);
    std::fwrite(result.error_tail.data(), 1, result.error_tail.size(), stderr);
    const bool finished = result.ending == ProbeResult::Ending::exited;
    if (finished && (result.code == 0 || result.code == does_not_fit)) {
        print(result.output);
        return result.code;
    }
    if (finished && !result.output.empty()) {
        const std::string line = "error: " + result.output + "\n";
        std::fwrite(line.data(), 1, line.size(), stderr);
        return result.code;
    }
    return report({ErrorCode::unavailable, options.model, "a plan", "its process " + result.reason(), "1bit doctor"});
}

}  // namespace

void add_plan(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    PlanRequest& request = options->request;
    CLI::App* command = app.add_subcommand("plan", "Show the memory that a model needs, and whether it fits.");
    add_model(command, &options->model);
    add_parsed(command, "-c,--ctx-size", "N",
               "tokens of one request with its answer; 0: the model's own; as serve takes it if not given",
               [options](const std::string& text) -> Result<void> {
                   Result<uint32_t> context = parse_context(text);
                   if (!context) return context.error();
                   options->context = *context;
                   return {};
               });
    add_number(command, "--parallel", "requests at one time, each with that context; as serve takes it if not given",
               &options->parallel, 1, 256);
    // what serve asks when arguments of llama.cpp decide
    command
        ->add_option_function<uint32_t>("--shared-ctx-size",
                                        [&request](const uint32_t& context) {
                                            request.context = context;
                                            request.shared = true;
                                        })
        ->group("");
    add_number(command, "--ubatch-size", "tokens computed at once", &request.ubatch, 1, 1 << 20);
    command->add_option("--device", options->device, "names of 1bit devices, separated by commas; auto; none: the CPU")
        ->type_name("LIST");
    add_cache_types(command, &request.cache_type_k, &request.cache_type_v);
    command->add_flag("--json", options->json, "print JSON");
    command->footer(
        "Without --ctx-size and --parallel the plan is of what 1bit serve takes without them: four requests at one\n"
        "time, each with the model's own context but 8192 tokens at most; one, then one of 4096 tokens,\n"
        "where that does not fit.\n\n"
        "Exit code: 0 it fits, 3 it does not, 1 failure, 2 usage.\n"
        "Examples:\n"
        "  1bit plan\n"
        "  1bit plan model.gguf --ctx-size 32768 --parallel 4 --device vulkan\n"
        "  1bit plan model.gguf --cache-type-k q8_0 --cache-type-v q8_0 --json");
    command->callback([options, run] { *run = [options] { return run_plan(*options); }; });
}

}  // namespace onebit
