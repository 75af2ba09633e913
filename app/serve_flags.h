// The flags of `1bit serve`, and how they win over onebit.yaml.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/config.h"

namespace onebit {

struct ServeFlags {
    std::string model;
    std::optional<std::string> host;
    std::optional<uint16_t> port;
    std::vector<std::string> api_keys;
    std::string api_key_file;
    std::vector<std::string> cors_origins, devices, preload;
    std::string prefill_device, excluded_reason;
    std::vector<std::string> excluded;
    std::optional<uint32_t> context, parallel, max_models, prefill_min_tokens;  // 0 of the last: auto
    std::optional<KeepAlive> keep_alive;
    std::optional<uint64_t> max_request_bytes;
    std::optional<std::chrono::seconds> drain_timeout, hang_timeout;
    std::string config_file;
    bool offline = false, no_memory_check = false, strict = false, loose_patterns = false;
    std::vector<std::string> engine_arguments;
};

// The options, bound to `flags`, which must live as long as `app`; those of the tandem and of the context alone, for
// `1bit run`.
void add_serve_flags(CLI::App* app, ServeFlags* flags);
void add_tandem_flags(CLI::App* app, ServeFlags* flags);
void add_context(CLI::App* app, const std::string& help, ServeFlags* flags);

// Keys of a file, one a line; empty lines and lines with '#' are left out. Error usage for a file without a key.
Result<std::vector<std::string>> read_key_file(const std::filesystem::path& file);

// --api-key and --api-key-file, else $ONEBIT_API_KEY, else none.
Result<std::vector<std::string>> given_api_keys(const std::vector<std::string>& keys, const std::string& file);

// The file named by --config, else the default one if it exists, else the defaults; then the flags.
Result<ServeConfig> load_config(const ServeFlags& flags);

// The flags over a configuration: a flag holds for every model, whatever the file says of it.
Result<ServeConfig> apply_flags(const ServeFlags& flags, ServeConfig config);

// "a,b" and repeated flags as one list without empty items.
std::vector<std::string> split_list(const std::vector<std::string>& values);

}  // namespace onebit
