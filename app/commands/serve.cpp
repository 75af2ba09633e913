// `1bit serve`: the supervisor.
#include <sys/stat.h>

#include "app/command.h"
#include "app/device_names.h"
#include "app/interrupt.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "app/serve_flags.h"
#include "app/version.h"
#include "base/log.h"
#include "server/supervisor/server.h"

namespace onebit {
namespace {

// Names of devices as ggml has them, in the defaults and in every model. An unknown one is an error; without any name
// the default devices are named, so that an engine never takes one GPU through two backends or software Vulkan.
Result<void> settle_devices(ServeConfig& config, const std::filesystem::path& program) {
    std::vector<std::vector<std::string>*> lists = {&config.defaults.devices};
    const bool open = left_open(config.defaults.devices);
    bool ask = !cpu_only(config.defaults.devices), named = !config.defaults.devices.empty();
    const auto add = [&](std::vector<std::string>& list) {
        if (list.empty()) return;
        lists.push_back(&list);
        named = true;
        ask = ask || !cpu_only(list);
    };
    add(config.defaults.prefill_device);
    for (auto& [name, model] : config.models) {
        add(model.devices);
        add(model.prefill_device);
    }
    std::vector<PhysicalDevice> devices;
    if (ask) {
        Result<std::vector<PhysicalDevice>> asked = ask_devices(program);
        if (!asked && named) return asked.error();
        if (!asked) {
            log_warning("serve", asked.error().message() + "; the engine chooses its devices");
            return {};
        }
        devices = *std::move(asked);
    }
    for (std::vector<std::string>* list : lists) {
        Result<std::vector<std::string>> names = ggml_names(*list, devices);
        if (!names) return names.error();
        *list = *std::move(names);
    }
    note_devices(config, open, devices);
    return settle_excluded(config, devices);
}

Result<ServeConfig> configuration(const ServeFlags& flags, const std::filesystem::path& program) {
    Result<ServeConfig> config = load_config(flags);
    if (!config) return config;
    ONEBIT_RETURN_IF_ERROR(settle_devices(*config, program));
    return config;
}

Result<void> fetch_models(const ServeConfig& config, const CatalogFolders& folders) {
    std::vector<std::string> names = config.preload;
    if (!config.model.empty())
        names.push_back(config.model);
    else if (config.default_model != ServeConfig{}.default_model)
        names.push_back(config.default_model);
    Interrupt interrupt;
    for (const std::string& name : names)
        ONEBIT_RETURN_IF_ERROR(fetch_if_missing(name, config, folders, interrupt.flag()));
    return {};
}

void warn_of_readable_keys(const ServeConfig& config) {
    struct stat status {};
    if (config.file.empty() || config.api_keys.empty() || ::stat(config.file.c_str(), &status) != 0) return;
    Result<ServeConfig> file = read_config(config.file);
    if (file.ok() && !file->api_keys.empty() && (status.st_mode & 077) != 0)
        log_warning("serve", config.file.string() + " holds keys and other users may read it: chmod 600 " +
                                 config.file.string());
}

int run_serve(ServeFlags flags) {
    flags.engine_arguments = arguments_after_dashes();
    std::filesystem::path program = program_path();
    Result<ServeConfig> config = configuration(flags, program);
    if (!config) return report(config.error());
    warn_of_readable_keys(*config);
    CatalogFolders folders = CatalogFolders::of_this_user();
    if (Result<void> fetched = fetch_models(*config, folders); !fetched) return report(fetched.error());
    ServerContext context;
    context.config = *std::move(config);
    context.program = program;
    context.folders = std::move(folders);
    context.reload = [flags, program, file = context.config.file]() mutable -> Result<ServeConfig> {
        Result<ServeConfig> fresh = configuration(flags, program);
        // without it all that it says would go at once, keys too
        if (fresh.ok() && fresh->file.empty() && !file.empty())
            return Error{ErrorCode::not_found, file.string(), "the file that was read before", "none", "put it back"};
        if (fresh.ok()) file = fresh->file;
        return fresh;
    };
    Result<void> ended = run_server(std::move(context));
    return ended ? 0 : report(ended.error());
}

}  // namespace

void add_serve(CLI::App& app, CommandRun* run) {
    auto flags = std::make_shared<ServeFlags>();
    CLI::App* command =
        app.add_subcommand("serve", "Serve models over HTTP: the OpenAI and Anthropic APIs, a web page.");
    add_serve_flags(command, flags.get());
    command->footer(
        "Arguments after -- go to the llama.cpp server. Flags win over the configuration file, see\n"
        "docs/configuration.md. SIGTERM ends running requests first, a second one stops; SIGHUP reads the file "
        "again.\n\n"
        "Examples:\n"
        "  1bit serve                                 # the built-in model, others when a request names them\n"
        "  1bit serve MODEL.gguf --port 8081\n"
        "  1bit serve ORG/REPO-GGUF:Q4_K_M --ctx-size 32768 --parallel 2\n"
        "  1bit serve MODEL.gguf --device vulkan      # this device, or an error\n"
        "  1bit serve --host 0.0.0.0 --api-key-file ~/.config/1bit/keys\n"
        "  1bit serve MODEL.gguf -- --flash-attn on   # llama.cpp's own arguments");
    command->callback([flags, run] { *run = [flags] { return run_serve(*flags); }; });
}

}  // namespace onebit
