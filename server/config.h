// What `1bit serve` is told, from flags and from onebit.yaml; flags win. See docs/configuration.md for the file's
// schema.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace onebit {

// Negative: for ever.
using KeepAlive = std::chrono::seconds;

// Settings of one model; what is empty or unset falls back to the ServeConfig's own.
struct ModelConfig {
    std::string source;                          // a path, REPO:QUANT, or a name of the catalog
    std::vector<std::string> aliases;            // other names a request may use
    std::vector<std::string> devices;            // ggml device names; empty: chosen
    std::vector<std::string> prefill_device;     // none or one: reads prompts on the memory that `devices` decodes on
    std::optional<uint32_t> prefill_min_tokens;  // prompts of at least so many tokens; 0 and none: chosen
    std::vector<std::string> open_devices;       // when no device was named: backends of the one GPU, by preference
    std::optional<bool> strict;                  // a member of the tandem is never replaced by another
    std::vector<std::pair<std::string, std::string>> excluded;  // members that are not used, and why; from flags
    std::optional<uint32_t> context;                            // tokens per slot
    std::optional<uint32_t> parallel;                           // slots
    std::optional<KeepAlive> keep_alive;
    bool pin = false;                    // never evicted to make room
    std::vector<std::string> arguments;  // handed to the llama.cpp server as they are
};

struct ServeConfig {
    std::string host = "127.0.0.1";
    uint16_t port = 8080;  // 0: any free port, printed at start
    std::vector<std::string> api_keys;
    std::vector<std::string> cors_origins;  // closed by default; "*" allows any, without credentials
    uint64_t max_request_bytes = 256ull << 20;
    std::chrono::seconds read_timeout{60};    // of a request's head and body
    std::chrono::seconds start_timeout{600};  // without any progress while a model loads
    std::chrono::seconds drain_timeout{30};   // running requests after SIGTERM
    std::chrono::seconds hang_timeout{30};    // least time without progress after which an engine counts as hung

    std::string model;  // fixed model of the command line; empty: on demand, default_model first
    std::string default_model = "builtin";
    std::vector<std::string> preload;
    KeepAlive keep_alive{300};  // of models loaded on demand; a fixed model stays
    uint32_t max_models = 1;
    bool offline = false;
    bool loose_patterns = false;                           // of schemas: one that makes no grammar is any string
    bool check_memory = true;                              // refuse with the plan's table what cannot fit
    ModelConfig defaults;                                  // flags that hold for every model
    std::map<std::string, std::string> device_identities;  // of ggml names, as keys of stored routes have them
    std::map<std::string, ModelConfig> models;

    std::filesystem::path file;  // the onebit.yaml that was read; empty if none
};

// Reads onebit.yaml over the defaults. Error usage naming file, line, key, what was expected and what was found;
// unknown keys are errors. Pure: does not touch models or devices.
Result<ServeConfig> read_config(const std::filesystem::path& file);
Result<ServeConfig> parse_config(std::string_view yaml, std::string_view subject);

// "90", "90s", "5m", "1h30m", "2d"; negative or "forever": for ever. Error usage.
Result<KeepAlive> parse_keep_alive(std::string_view text);

// A KeepAlive that ends. Error usage, also for what is longer than ten years.
Result<std::chrono::seconds> parse_duration(std::string_view text);

// Bytes: "4096", "64K", "256M", "2G", "1T" (powers of 1024; a following "B" or "iB" is allowed). Error usage.
Result<uint64_t> parse_size(std::string_view text);

// Tokens of a context: 0 for the model's own, or as many as llama.cpp's least step, to multiples of which it rounds up.
// Error usage.
Result<uint32_t> parse_context(std::string_view text);

// An origin as browsers send it, "scheme://host" or "scheme://host:port"; "*" for any, "null" for pages without one.
// In lower case and without the scheme's own port. Error usage.
Result<std::string> parse_origin(std::string_view text);

// Whether a request's header can carry it: one line of text, without spaces around it.
bool is_usable_api_key(std::string_view key);

// $XDG_CONFIG_HOME/1bit/onebit.yaml, else $HOME/.config/1bit/onebit.yaml; empty without a home. It need not exist.
std::filesystem::path default_config_file();

}  // namespace onebit
