// `1bit kernels`: the GPU kernels of this build, what the compiler makes of them, and the cache of what it made.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/command_line.h"
#include "app/kernels_text.h"
#include "app/output.h"
#include "hrx/loom/image_cache.h"
#include "hrx/loom/specialiser.h"

namespace onebit {
namespace {

struct Options {
    std::string target = "gfx1151", kernel;
    std::vector<std::string> kernels, constants;
    bool json = false;
};

Result<loom::Constants> read_constants(const std::vector<std::string>& texts) {
    loom::Constants constants;
    for (const std::string& text : texts) {
        auto constant = loom::parse_constant(text);
        if (!constant.ok()) return std::move(constant).error();
        const auto [same, is_new] = constants.insert(*constant);
        if (!is_new)
            return Error{ErrorCode::usage, "--set " + text, "one value for each constant",
                         "a second one of " + same->first, "name it once"};
    }
    return constants;
}

int run_list(const Options& options) {
    print(options.json ? kernels_to_json(loom::kernel_set()) : kernels_to_text(loom::kernel_set()));
    return 0;
}

int run_show(const Options& options) {
    const auto kernel = loom::find_kernel(options.kernel);
    if (!kernel.ok()) return report(kernel.error());
    auto constants = read_constants(options.constants);
    if (!constants.ok()) return report(constants.error());
    const auto request = loom::make_request(**kernel, options.target, std::move(*constants));
    if (!request.ok()) return report(request.error());
    const auto view = look_at_kernel(*request);
    if (!view.ok()) return report(view.error());
    print(options.json ? view_to_json(*request, *view) : view_to_text(*request, *view));
    return 0;
}

int run_warm(const Options& options) {
    auto constants = read_constants(options.constants);
    if (!constants.ok()) return report(constants.error());
    std::vector<const loom::Kernel*> kernels;  // all of them are looked at before the first is compiled
    for (const std::string& name : options.kernels) {
        const auto kernel = loom::find_kernel(name);
        if (!kernel.ok()) return report(kernel.error());
        if (const auto request = loom::make_request(**kernel, options.target, *constants); !request.ok())
            return report(request.error());
        kernels.push_back(*kernel);
    }
    const auto specialiser = loom::Specialiser::create();
    std::vector<std::shared_ptr<loom::Variant>> variants;
    for (const loom::Kernel* kernel : kernels) {
        auto variant = specialiser->variant(*kernel, options.target, *constants);
        if (!variant.ok()) return report(variant.error());
        variants.push_back(std::move(*variant));
    }
    int code = 0;
    for (const auto& variant : variants) {
        if (const auto done = variant->wait(); !done.ok()) code = report(done.error());
    }
    const auto counts = specialiser->counts();
    if (options.json) {
        const nlohmann::json json{
            {"compiled", counts.compiled}, {"cached", counts.cache_hits}, {"failed", counts.failed}};
        print(json.dump(2) + "\n");
    } else {
        print(std::to_string(counts.compiled) + " compiled, " + std::to_string(counts.cache_hits) + " were there, " +
              std::to_string(counts.failed) + " failed\n");
    }
    return code;
}

int run_clear(const Options& options) {
    auto cache = loom::ImageCache::open();
    if (!cache.ok()) return report(cache.error());
    const uint64_t bytes = cache->bytes();
    if (const auto cleared = cache->clear(); !cleared.ok()) return report(cleared.error());
    if (options.json) {
        print(nlohmann::json{{"bytes", bytes}, {"folder", cache->folder().string()}}.dump(2) + "\n");
    } else {
        print(std::to_string(bytes) + " bytes removed from " + cache->folder().string() + "\n");
    }
    return 0;
}

void add_request(CLI::App* command, Options* options) {
    command->add_option("--target", options->target, "the chip, such as gfx1151 or sm_90; gfx1151 if not given")
        ->type_name("CHIP");
    add_repeated(command, "--set", "NAME=N", "fixes a constant of the kernel", &options->constants);
}

}  // namespace

void add_kernels(CLI::App& app, CommandRun* run) {
    CLI::App* command =
        app.add_subcommand("kernels", "Show the GPU kernels of this build, compile them, clear their cache.");
    command->require_subcommand(1);
    const auto add = [&](const char* name, const char* help, int (*work)(const Options&)) {
        auto options = std::make_shared<Options>();
        CLI::App* sub = command->add_subcommand(name, help);
        sub->add_flag("--json", options->json, "print JSON");
        sub->callback([options, work, run] { *run = [options, work] { return work(*options); }; });
        return std::pair{sub, options.get()};
    };
    add("list", "Kernels with their source, constants and the chips that they have images for.", run_list);
    const auto [show, show_options] =
        add("show", "One kernel compiled: registers, memory, occupancy and code.", run_show);
    show->add_option("KERNEL", show_options->kernel, "a name of 1bit kernels list")->required()->type_name("");
    add_request(show, show_options);
    show->footer(
        "The occupancy is an estimate from registers and memory.\nExample:\n  1bit kernels show rms_norm_f32 --set "
        "columns=4096");
    const auto [warm, warm_options] = add("warm", "Compile kernels into the cache now.", run_warm);
    warm->add_option("KERNEL", warm_options->kernels, "names of 1bit kernels list")->required()->type_name("");
    add_request(warm, warm_options);
    warm->footer("Example:\n  1bit kernels warm rms_norm_f32 mat_vec_q4_k --target gfx1151 --set columns=4096");
    add("clear", "Empty the cache of compiled kernels.", run_clear);
    command->footer(
        "Examples:\n  1bit kernels list\n  1bit kernels show mat_vec_q4_k --target sm_90 --set columns=4096");
}

}  // namespace onebit
