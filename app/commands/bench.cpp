// `1bit bench`: speed of prefill and decode on each device, with a check of what they compute.
#include "engine/bench.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "app/bench_served.h"
#include "app/command_line.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "app/version.h"
#include "base/cache_folder.h"
#include "engine/devices.h"

namespace onebit {
namespace {

struct Options {
    std::string model = "builtin", device, text;
    std::string json, markdown, plot;  // files
    BenchRequest request;
    std::vector<uint32_t> clients;
};

Result<void> save(const std::string& file, const std::string& text) {
    if (file.empty()) return {};
    if (file == "-") {
        print(text);
        return {};
    }
    return publish_file(file, std::as_bytes(std::span(text)), 0644);
}

// What is measured for minutes should not be lost for a folder that is not there.
Result<void> check_place(const std::string& file) {
    if (file.empty() || file == "-") return {};
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
        return Error{ErrorCode::usage, file, "a file to write", "a folder", ""};
    const std::filesystem::path parent = std::filesystem::path(file).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    if (::access(folder.c_str(), W_OK | X_OK) != 0)
        return error_from_errno(errno, folder, "name a folder that may be written to");
    return {};
}

Result<std::string> read_text(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return error_from_errno(errno, file, "give a text file to --text");
    std::ostringstream text;
    text << stream.rdbuf();
    if (text.str().empty()) return Error{ErrorCode::usage, file, "a text", "an empty file or a folder", ""};
    return text.str();
}

Result<std::vector<ServedCell>> served(const Options& options) {
    ServedRequest request;
    request.program = program_path();
    request.model_file = options.request.model_file;
    request.devices = options.request.devices;
    request.clients = options.clients;
    request.prompt = options.request.prompts.front();
    request.generate = options.request.generate;
    request.rounds = options.request.repeat;
    request.ubatch = options.request.ubatch;
    request.threads = options.request.threads;
    request.text = options.request.text.empty() ? held_out_text() : options.request.text;
    request.progress = options.request.progress;
    return measure_served(request);
}

int run_bench_command(Options options) {
    BenchRequest& request = options.request;
    for (const std::string& file : {options.json, options.markdown, options.plot})
        if (const auto place = check_place(file); !place.ok()) return report(place.error());
    const auto model = find_usable_model(options.model);
    if (!model.ok()) return report(model.error());
    request.model_file = model->files.front().string();
    request.model_files = model->files.size();
    request.model_name = model->id;
    if (!options.text.empty()) {
        auto text = read_text(options.text);
        if (!text.ok()) return report(text.error());
        request.text = std::move(*text);
    }
    const auto devices = list_devices();
    if (!devices.ok()) return report(devices.error());
    if (options.device.empty()) {
        request.devices = default_devices(*devices);
        request.devices.push_back("CPU");
    } else {
        auto chosen = select_devices(options.device, *devices);
        if (!chosen.ok()) return report(chosen.error());
        request.devices = chosen->empty() ? std::vector<std::string>{"CPU"} : std::move(*chosen);
    }
    for (const std::string& name : request.devices) tell("device " + device_line(*devices, name));
    request.progress = [](const std::string& step) { tell(step); };

    if (!options.clients.empty() && request.generate == 0) {
        return report({ErrorCode::usage, "--clients", "--generate of 1 or more", "0", ""});
    }
    auto measured = run_bench(request);
    if (!measured.ok()) return report(measured.error());
    auto through_server = served(options);
    if (!through_server.ok()) return report(through_server.error());
    measured->served = std::move(*through_server);
    if (options.json != "-" && options.markdown != "-") print(bench_to_text(*measured));
    for (const auto& [file, text] :
         {std::pair(options.json, bench_to_json(*measured)), std::pair(options.markdown, bench_to_markdown(*measured)),
          std::pair(options.plot, bench_to_svg(*measured))}) {
        if (const auto saved = save(file, text); !saved.ok()) return report(saved.error());
    }
    return measured->right() ? 0 : 1;
}

}  // namespace

void add_bench(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    BenchRequest& request = options->request;
    CLI::App* command =
        app.add_subcommand("bench", "Measure prefill and decode on each device, and check their results.");
    add_model(command, &options->model);
    command
        ->add_option("--device", options->device,
                     "names of 1bit devices, separated by commas; the default GPUs and the CPU if not given")
        ->type_name("LIST");
    add_parsed(command, "--prompt", "LIST", "sizes of prompts in tokens, 128,512 if not given",
               [&request](const std::string& text) { return parse_numbers(text, 1, 1u << 24, &request.prompts); });
    add_parsed(command, "--depth", "LIST", "tokens that are in the cache before, 0,1024 if not given",
               [&request](const std::string& text) { return parse_numbers(text, 0, 1u << 24, &request.depths); });
    add_number(command, "--generate", "tokens to decode, 32 if not given; 0: none", &request.generate, 0, 1 << 20);
    add_number(command, "--repeat", "measurements of each, 5 if not given", &request.repeat, 1, 1000);
    add_number(command, "--ubatch-size", "tokens computed at once, 512 if not given", &request.ubatch, 1, 1 << 20);
    add_number(command, "-t,--threads", "of the CPU; all if not given", &request.threads, 1, 1024);
    add_number(command, "--check-tokens", "positions to compare with the CPU, 1024 if not given; 0: none",
               &request.check_tokens, 0, 1 << 24);
    add_parsed(command, "--clients", "LIST",
               "measure the first size of --prompt through 1bit serve as well, with so many clients at once: 1,4,16",
               [options](const std::string& text) { return parse_numbers(text, 1, 256, &options->clients); });
    command->add_option("--text", options->text, "text to take tokens from; a held-out text if not given")
        ->type_name("FILE");
    command->add_option("--json", options->json, "write JSON; - for standard output")->type_name("FILE");
    command->add_option("--markdown", options->markdown, "write a Markdown table; - for standard output")
        ->type_name("FILE");
    command->add_option("--plot", options->plot, "draw an SVG")->type_name("FILE");
    command->footer(
        "Exit code: 1 when a device computes other than the CPU (mean KL, top-1 tokens that are no tie, perplexity "
        "within 1 %).\n"
        "Examples:\n"
        "  1bit bench\n"
        "  1bit bench model.gguf --device vulkan,cpu --prompt 512,2048 --depth 0,8192 --plot bench.svg\n"
        "  1bit bench model.gguf --clients 1,4,16\n"
        "  1bit bench model.gguf --json result.json --markdown result.md");
    command->callback([options, run] { *run = [options] { return run_bench_command(*options); }; });
}

}  // namespace onebit
