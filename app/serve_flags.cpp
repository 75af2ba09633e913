#include "app/serve_flags.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "app/command_line.h"

namespace onebit {
namespace {

template <typename T, typename Parse>
CLI::Option* add_value(CLI::App* app, const std::string& names, const std::string& type, const std::string& help,
                       std::optional<T>* to, Parse parse) {
    return add_parsed(app, names, type, help, [=](const std::string& text) -> Result<void> {
        auto value = parse(text);
        if (!value) return value.error();
        *to = T(*value);
        return {};
    });
}

Result<std::string> not_empty(const std::string& text) {
    if (text.empty()) return Error{ErrorCode::usage, "value", "a text", "nothing", ""};
    return text;
}

}  // namespace

void add_tandem_flags(CLI::App* app, ServeFlags* flags) {
    app->add_option("--prefill-device", flags->prefill_device,
                    "Device that reads prompts, on the memory of the one that --device names: one of the two must be "
                    "Vulkan")
        ->type_name("NAME");
    add_parsed(
        app, "--prefill-min-tokens", "N",
        "Prompt tokens from which on --prefill-device reads them, more than a ubatch counts as a ubatch; auto "
        "for what 1bit tune or idle time has measured (auto)",
        [flags](const std::string& text) -> Result<void> {
            Result<uint64_t> number = text == "auto" ? uint64_t{0} : parse_number(text, 1, 1u << 30);
            if (!number)
                return Error{ErrorCode::usage, "tokens", "auto or " + number.error().expected, "'" + text + "'", ""};
            flags->prefill_min_tokens = static_cast<uint32_t>(*number);
            return {};
        });
    app->add_flag("--strict", flags->strict,
                  "Never replace one of the two devices by the other: what it cannot run is an error");
    add_repeated(app, "--exclude-member", "NAME", "Do not use this one of the two devices; may be repeated",
                 &flags->excluded);
    app->add_option("--reason", flags->excluded_reason, "Why, for the log and the answers")->type_name("TEXT");
}

void add_context(CLI::App* app, const std::string& help, ServeFlags* flags) {
    add_value(app, "-c,--ctx-size", "N", help, &flags->context, parse_context);
}

void add_serve_flags(CLI::App* app, ServeFlags* flags) {
    app->add_option("MODEL", flags->model,
                    "The one model to serve: a path, REPO:QUANT of a hub, or a name of 1bit models or onebit.yaml. "
                    "Without it each request names its model")
        ->type_name("");
    add_value(app, "--host", "ADDRESS", "Address to listen on (127.0.0.1)", &flags->host, not_empty);
    add_number(app, "--port", "Port to listen on, 0 for any free one (8080)", &flags->port, 0, 65535);
    add_repeated(app, "--api-key", "KEY",
                 "Key that requests must carry; may be repeated. Others can see it in the list of processes: prefer "
                 "--api-key-file or $ONEBIT_API_KEY",
                 &flags->api_keys);
    app->add_option("--api-key-file", flags->api_key_file, "File with such keys, one a line")->type_name("FILE");
    add_repeated(app, "--cors-origin", "ORIGIN",
                 "Web pages of this origin, such as https://chat.example, may call the server; may be repeated, '*' "
                 "for all",
                 &flags->cors_origins);
    add_repeated(app, "--device", "NAME",
                 "Device to run on, a name of 1bit devices, 'vulkan' for the first of them or 'cpu'; may be repeated "
                 "or a list with commas. The start fails when it is not there",
                 &flags->devices);
    add_tandem_flags(app, flags);
    add_context(app, "Tokens of one request with its answer, at least 256; 0 for the model's own", flags);
    add_number(app, "--parallel", "Requests at one time for each model", &flags->parallel, 1, 256);
    add_value(app, "--keep-alive", "TIME", "Unload a model after this time without requests: 90s, 5m, forever (5m)",
              &flags->keep_alive, parse_keep_alive);
    add_number(app, "--max-models", "Models loaded at one time (1)", &flags->max_models, 1, 64);
    add_repeated(app, "--preload", "MODEL", "Load this model at start; may be repeated", &flags->preload);
    app->add_option("--config", flags->config_file, "Configuration file (~/.config/1bit/onebit.yaml)")
        ->type_name("FILE");
    app->add_flag("--offline", flags->offline, "Never ask a hub");
    app->add_flag("--no-memory-check", flags->no_memory_check, "Load a model even when the plan says it cannot fit");
    app->add_flag("--loose-patterns", flags->loose_patterns,
                  "Let a pattern of a schema of which no grammar can be made stand for any string, instead of refusing "
                  "the request");
    add_value(app, "--max-request-size", "SIZE", "Refuse larger requests: 64K, 256M (256M)", &flags->max_request_bytes,
              [](const std::string& text) -> Result<uint64_t> {
                  Result<uint64_t> size = parse_size(text);
                  if (size.ok() && *size == 0)
                      return Error{ErrorCode::usage, "size", "at least one byte", "'" + text + "'", ""};
                  return size;
              });
    add_value(app, "--drain-timeout", "TIME", "Time that running requests get after SIGTERM (30s)",
              &flags->drain_timeout, parse_duration);
    add_value(app, "--hang-timeout", "TIME", "Least time without progress before an engine is restarted (30s)",
              &flags->hang_timeout, parse_duration);
}

Result<std::vector<std::string>> read_key_file(const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
        return Error{ErrorCode::usage, file.string(), "a file with one key a line", "a folder", ""};
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return error_from_errno(errno, file.string(), "name a file with one key a line");
    std::vector<std::string> keys;
    std::string line;
    size_t bytes = 0;
    while (std::getline(stream, line)) {
        if ((bytes += line.size()) > 65536 ||
            printable(line.substr(0, line.find('\r'))) != line.substr(0, line.find('\r')))
            return Error{ErrorCode::usage, file.string(), "one key a line", "no such text", "check the path"};
        line.erase(line.find_last_not_of(" \t\r") + 1);
        line.erase(0, line.find_first_not_of(" \t"));
        if (!line.empty() && line[0] != '#') keys.push_back(line);
    }
    if (keys.empty()) return Error{ErrorCode::usage, file.string(), "at least one key", "none", "write one a line"};
    return keys;
}

Result<std::vector<std::string>> given_api_keys(const std::vector<std::string>& keys, const std::string& file) {
    std::vector<std::string> all = keys;
    for (const std::string& key : all)
        if (key.empty()) return Error{ErrorCode::usage, "--api-key", "a key", "nothing", "leave it out for no key"};
    if (!file.empty()) {
        Result<std::vector<std::string>> more = read_key_file(file);
        if (!more) return more;
        all.insert(all.end(), more->begin(), more->end());
    }
    const char* variable = std::getenv("ONEBIT_API_KEY");
    if (all.empty() && variable && *variable) all.push_back(variable);
    if (!std::all_of(all.begin(), all.end(), is_usable_api_key))
        return Error{ErrorCode::usage, "API key", "one line of text that a header can carry",
                     "one with spaces around it or other bytes", ""};
    return all;
}

std::vector<std::string> split_list(const std::vector<std::string>& values) {
    std::vector<std::string> list;
    for (const std::string& value : values)
        for (size_t begin = 0; begin <= value.size();) {
            size_t end = std::min(value.find(',', begin), value.size());
            if (end > begin) list.push_back(value.substr(begin, end - begin));
            begin = end + 1;
        }
    return list;
}

Result<ServeConfig> apply_flags(const ServeFlags& flags, ServeConfig config) {
    Result<std::vector<std::string>> keys = given_api_keys(flags.api_keys, flags.api_key_file);
    if (!keys) return keys.error();
    if (!keys->empty()) config.api_keys = *keys;
    if (flags.host) config.host = *flags.host;
    if (flags.port) config.port = *flags.port;
    if (!flags.cors_origins.empty()) config.cors_origins.clear();
    for (const std::string& text : flags.cors_origins) {
        Result<std::string> origin = parse_origin(text);
        if (!origin) {
            Error error = origin.error();
            error.subject = "--cors-origin";
            return error;
        }
        config.cors_origins.push_back(*std::move(origin));
    }
    if (flags.max_request_bytes) config.max_request_bytes = *flags.max_request_bytes;
    if (flags.drain_timeout) config.drain_timeout = *flags.drain_timeout;
    if (flags.hang_timeout) config.hang_timeout = *flags.hang_timeout;
    if (!flags.model.empty()) config.model = flags.model;
    if (!flags.preload.empty()) config.preload = flags.preload;
    if (flags.max_models) config.max_models = *flags.max_models;
    config.offline = config.offline || flags.offline;
    config.check_memory = config.check_memory && !flags.no_memory_check;
    config.loose_patterns = config.loose_patterns || flags.loose_patterns;

    if (flags.keep_alive) {
        config.keep_alive = *flags.keep_alive;
        for (auto& [name, model] : config.models) model.keep_alive.reset();
    }
    if (!flags.devices.empty()) {
        config.defaults.devices = split_list(flags.devices);
        if (config.defaults.devices.empty())
            return Error{ErrorCode::usage, "--device", "the name of a device", "nothing", "see 1bit devices"};
        for (auto& [name, model] : config.models) model.devices.clear();
    }
    if (!flags.prefill_device.empty()) {
        if (config.defaults.devices.size() != 1)
            return Error{ErrorCode::usage, "--prefill-device", "one --device beside it, which makes the tokens",
                         std::to_string(config.defaults.devices.size()) + " of them", "see 1bit devices"};
        config.defaults.prefill_device = {flags.prefill_device};
        for (auto& [name, model] : config.models) model.prefill_device.clear();
    }
    if (flags.strict) {
        config.defaults.strict = true;
        for (auto& [name, model] : config.models) model.strict.reset();
    }
    for (const std::string& member : split_list(flags.excluded))
        config.defaults.excluded.emplace_back(
            member, flags.excluded_reason.empty() ? "--exclude-member" : flags.excluded_reason);
    if (!flags.excluded_reason.empty() && config.defaults.excluded.empty())
        return Error{ErrorCode::usage, "--reason", "an --exclude-member beside it", "none", ""};
    if (flags.prefill_min_tokens) {
        config.defaults.prefill_min_tokens = flags.prefill_min_tokens;
        for (auto& [name, model] : config.models) model.prefill_min_tokens.reset();
    }
    if (flags.context) {
        config.defaults.context = flags.context;
        for (auto& [name, model] : config.models) model.context.reset();
    }
    if (flags.parallel) {
        config.defaults.parallel = flags.parallel;
        for (auto& [name, model] : config.models) model.parallel.reset();
    }
    config.defaults.arguments.insert(config.defaults.arguments.end(), flags.engine_arguments.begin(),
                                     flags.engine_arguments.end());
    return config;
}

Result<ServeConfig> load_config(const ServeFlags& flags) {
    std::filesystem::path file = flags.config_file;
    std::error_code ignored;
    if (file.empty()) {
        file = default_config_file();
        if (file.empty() || !std::filesystem::exists(file, ignored)) return apply_flags(flags, {});
    }
    Result<ServeConfig> config = read_config(file);
    if (!config) return config;
    return apply_flags(flags, *std::move(config));
}

}  // namespace onebit
