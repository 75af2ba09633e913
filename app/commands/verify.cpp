// `1bit verify`: whether two choices of devices compute the same.
#include "engine/verify.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

#include "app/command_line.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "app/verify_choice.h"
#include "engine/devices.h"

namespace onebit {
namespace {

struct Options {
    std::string model = "builtin", tested, reference, third, text;
    std::optional<double> mean_kl, max_kl;
    VerifyRequest request;
    bool json = false;
};

Result<double> parse_bound(const std::string& text) {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1e6) return value;
    return Error{ErrorCode::usage, "bound", "a number from 0 on", "'" + text + "'", ""};
}

Result<std::string> read_text(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return error_from_errno(errno, file, "give a text file to --text");
    std::ostringstream text;
    text << stream.rdbuf();
    if (text.str().empty()) return Error{ErrorCode::usage, file, "a text", "an empty file or a folder", ""};
    return text.str();
}

Result<void> set_sides(const Options& options, VerifyRequest* request) {
    const auto devices = list_devices();
    if (!devices.ok()) return devices.error();
    auto sides = choose_sides(options.tested, options.reference, options.third, *devices);
    if (!sides.ok()) return std::move(sides).error();
    // a device never sees more than a ubatch; auto takes whole ubatches
    const MakeSplit make_split = [request](const std::string& decode, const std::string& prefill,
                                           std::optional<uint32_t> least) {
        return make_split_device(decode, prefill, std::min(least.value_or(request->ubatch), request->ubatch));
    };
    const auto resolve = [&](const DeviceChoice& choice, VerifyDevice* to) -> Result<void> {
        auto resolved = resolve_choice(choice, *devices, make_split);
        if (!resolved.ok()) return std::move(resolved).error();
        *to = std::move(*resolved);
        return {};
    };
    ONEBIT_RETURN_IF_ERROR(resolve(sides->tested, &request->tested));
    ONEBIT_RETURN_IF_ERROR(resolve(sides->reference, &request->reference));
    if (!sides->third) {
        request->limits = VerifyLimits::without_third();
    } else {
        request->third.emplace();
        ONEBIT_RETURN_IF_ERROR(resolve(*sides->third, &*request->third));
    }
    if (options.mean_kl) request->limits.mean_kl = *options.mean_kl;
    if (options.max_kl) request->limits.max_kl = *options.max_kl;
    return {};
}

int run_verify_command(Options options) {
    VerifyRequest& request = options.request;
    const auto model = find_usable_model(options.model);
    if (!model.ok()) return report(model.error());
    request.model_file = model->files.front().string();
    request.model_name = model->id;
    if (!options.text.empty()) {
        auto text = read_text(options.text);
        if (!text.ok()) return report(text.error());
        request.text = std::move(*text);
    }
    if (const auto set = set_sides(options, &request); !set.ok()) return report(set.error());
    request.progress = [](const std::string& step) { tell(step); };
    const auto verified = run_verify(request);
    if (!verified.ok()) return report(verified.error());
    print(options.json ? verify_to_json(*verified) : verify_to_text(*verified));
    return verified->right() ? 0 : 1;
}

void add_sides(CLI::App* command, Options* options) {
    command
        ->add_option("--a", options->tested,
                     "what is tested: names of 1bit devices, or flags of 1bit serve in quotes; the default GPUs")
        ->type_name("DEVICES");
    command
        ->add_option("--b", options->reference,
                     "what it is compared with; the decoding device alone for a split, else the CPU")
        ->type_name("DEVICES");
    command
        ->add_option("--third", options->third,
                     "what shows how far two devices differ as a rule; the prefill device alone for a split, else the "
                     "CPU where it is not one of the two; none")
        ->type_name("DEVICES");
}

}  // namespace

void add_verify(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    VerifyRequest& request = options->request;
    CLI::App* command = app.add_subcommand("verify", "Check that two choices of devices compute the same.");
    add_model(command, &options->model);
    add_sides(command, options.get());
    add_parsed(command, "--prompt", "LIST", "lengths of prompts in tokens; if not given, those around every edge",
               [&request](const std::string& text) { return parse_numbers(text, 0, 1u << 24, &request.prompts); });
    command->add_flag("--beyond-4096", request.beyond_4096, "edges past 4096 tokens too");
    add_parsed(command, "--slots", "LIST", "requests at one time, 1,4 if not given",
               [&request](const std::string& text) { return parse_numbers(text, 1, 64, &request.slots); });
    add_number(command, "--generate", "tokens after the prompt, 64 if not given", &request.generate, 1, 1 << 16);
    add_number(command, "--ubatch-size", "tokens computed at once, 512 if not given", &request.ubatch, 1, 1 << 20);
    add_number(command, "-t,--threads", "of the CPU; all if not given", &request.threads, 1, 1024);
    add_cache_types(command, &request.cache_type_k, &request.cache_type_v);
    add_flash_attention(command, &request.flash_attention);
    const auto add_bound = [&](const char* name, const char* help, std::optional<double>* bound) {
        add_parsed(command, name, "X", help, [bound](const std::string& text) -> Result<void> {
            auto value = parse_bound(text);
            if (!value.ok()) return std::move(value).error();
            *bound = *value;
            return {};
        });
    };
    add_bound("--max-mean-kl", "bound of the mean divergence, 0.0006 if not given (0.02 without a third)",
              &options->mean_kl);
    add_bound("--max-kl", "bound of the largest divergence, 0.007 if not given (0.2 without a third)",
              &options->max_kl);
    command->add_option("--text", options->text, "text to take tokens from; a held-out text if not given")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "print JSON");
    command->footer(
        "Exit code: 0 within the bounds, 1 past them or a split that did not happen, 2 usage.\n"
        "Examples:\n"
        "  1bit verify\n"
        "  1bit verify model.gguf --a vulkan --b cpu --ubatch-size 32\n"
        "  1bit verify model.gguf --a '--device vulkan --prefill-device cpu --prefill-min-tokens 32' --json");
    command->callback([options, run] { *run = [options] { return run_verify_command(*options); }; });
}

}  // namespace onebit
