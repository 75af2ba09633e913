#include "server/supervisor/model_target.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>

#include "server/catalog/gguf_file.h"
#include "server/supervisor/llama_options.h"

namespace onebit {
namespace {

constexpr uint32_t kDefaultContext = 8192, kSmallContext = 4096, kUnknownContext = 4096;
constexpr uint32_t kDefaultSlots = 4;

bool embeds_only(const std::string& architecture) {
    static const std::set<std::string> kEncoders = {
        "bert",         "nomic-bert",  "nomic-bert-moe", "neo-bert",        "jina-bert-v2",
        "jina-bert-v3", "modern-bert", "eurobert",       "gemma-embedding", "t5encoder"};
    return kEncoders.count(architecture) > 0;
}

// llama.cpp's numbers of pooling types: 4 ranks, 1 to 3 make one vector of a text.
uint64_t pooling_type(const ModelEntry& entry) {
    if (entry.files.empty()) return 0;
    Result<GgufHead> head = read_gguf_head(entry.files.front());
    return head.ok() ? head->number(entry.architecture + ".pooling_type", 0) : 0;
}

constexpr uint32_t kUbatch = 512, kBatch = 2048;  // llama.cpp's defaults

// All work is done by the CPU.
bool cpu_alone(const ModelConfig& settings) {
    const std::vector<std::string>& given = settings.arguments;
    if (names_option(given, {"-dev", "--device"})) return option_value(given, {"-dev", "--device"}) == "none";
    return !settings.devices.empty() && !has_tandem(settings) && engine_device_list(settings.devices) == "none";
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The tokens of a prompt after which an engine on the CPU looks whether the client is still there: one ubatch. 0 where
// it stays llama.cpp's, which takes four at a time.
uint32_t batch_of_cpu(const ModelTarget& target) {
    const std::vector<std::string>& given = target.settings.arguments;
    if (!cpu_alone(target.settings) || names_option(given, {"-b", "--batch-size"}) ||
        !variable("LLAMA_ARG_BATCH").empty())
        return 0;
    // an image must not be cut into more batches than it has to be
    if (!target.entry.projector.empty() || names_option(given, {"-mm", "--mmproj", "-mmu", "--mmproj-url"})) return 0;
    std::string text = option_value(given, {"-ub", "--ubatch-size"});
    if (text.empty()) text = variable("LLAMA_ARG_UBATCH");
    if (text.empty()) return kUbatch;
    uint32_t ubatch = 0;
    std::from_chars(text.data(), text.data() + text.size(), ubatch);
    return ubatch >= 32 && ubatch <= kBatch ? ubatch : 0;  // fewer are too few for a BLAS
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    return text;
}

}  // namespace

ModelConfig effective_settings(const ServeConfig& config, const ModelConfig& model) {
    ModelConfig result = model;
    const ModelConfig& defaults = config.defaults;
    if (result.devices.empty()) result.devices = defaults.devices;
    // a device for prompts belongs to the device for tokens that stands beside it
    if (model.devices.empty() && result.prefill_device.empty()) result.prefill_device = defaults.prefill_device;
    if (!result.prefill_min_tokens) result.prefill_min_tokens = defaults.prefill_min_tokens;
    if (!result.strict) result.strict = defaults.strict;
    result.excluded = defaults.excluded;
    if (model.devices.empty() && result.prefill_device.empty()) result.open_devices = defaults.open_devices;
    if (!result.context) result.context = defaults.context;
    if (!result.parallel) result.parallel = defaults.parallel;
    if (!result.keep_alive) result.keep_alive = defaults.keep_alive;
    // a pinned model stays unless it was given a time of its own
    if (!result.keep_alive) result.keep_alive = result.pin ? KeepAlive{-1} : config.keep_alive;
    result.pin = result.pin || defaults.pin;
    result.arguments = defaults.arguments;
    result.arguments.insert(result.arguments.end(), model.arguments.begin(), model.arguments.end());
    return result;
}

std::vector<std::string> models_at_start(const ServeConfig& config) {
    if (!config.preload.empty() || config.default_model.empty() || config.models.size() > 1) return config.preload;
    return {config.default_model};
}

Result<ModelTarget> resolve_model(const ServeConfig& config, const CatalogFolders& folders, const std::string& name,
                                  bool from_request) {
    std::string wanted = name.empty() ? config.default_model : name;
    if (wanted.empty())
        return Error{ErrorCode::usage, "field 'model'", "the name of a model", "none, and no default model is set",
                     "GET /v1/models lists the names"};
    ModelTarget target;
    const ModelConfig* configured = nullptr;
    for (const auto& [key, model] : config.models) {
        bool alias = std::find(model.aliases.begin(), model.aliases.end(), wanted) != model.aliases.end();
        if (key != wanted && !alias) continue;
        configured = &model;
        target.id = key;
        target.aliases = model.aliases;
        if (key == wanted) break;
    }
    std::string source = configured && !configured->source.empty() ? configured->source
                         : configured                              ? target.id
                                                                   : wanted;
    const bool names_only = !configured && from_request && !name.empty();
    Result<ModelEntry> entry = names_only ? find_listed_model(source, folders) : find_model(source, folders);
    if (!entry.ok()) return entry.error();
    // a short or differently written name may mean a configured model after all
    if (!configured) {
        for (const auto& [key, model] : config.models) {
            if (key != entry->id && model.source != entry->id) continue;
            configured = &model;
            target.id = key;
            target.aliases = model.aliases;
            break;
        }
    }
    if (!entry->problem.empty())
        return Error{ErrorCode::invalid, "model '" + entry->id + "'", "a model that can be used", entry->problem, ""};
    if (target.id.empty()) target.id = entry->id;
    target.entry = std::move(*entry);
    target.settings = effective_settings(config, configured ? *configured : ModelConfig{});
    target.device_identities = config.device_identities;
    return target;
}

std::string name_to_try(const ServeConfig& config, const CatalogFolders& folders) {
    for (const std::string& name : config.preload) {
        const Result<ModelTarget> target = resolve_model(config, folders, name, false);
        if (!target.ok()) continue;
        // a file that no folder of models holds is known by its path alone
        return resolve_model(config, folders, target->id, true).ok() ? target->id : name;
    }
    return config.default_model;
}

bool slots_are_ours(const ModelTarget& target) {
    return !names_option(target.settings.arguments, {"-c", "--ctx-size", "-np", "--parallel", "--kv-unified-per-slot"});
}

std::vector<SlotShape> slot_shapes(const ModelTarget& target) {
    const ModelConfig& settings = target.settings;
    uint32_t limit = target.entry.context_length
                         ? static_cast<uint32_t>(std::min<uint64_t>(target.entry.context_length, 1u << 30))
                         : kUnknownContext;
    uint32_t context = settings.context.value_or(std::min(limit, kDefaultContext));
    if (context == 0) context = limit;
    uint32_t slots = std::max(settings.parallel.value_or(kDefaultSlots), 1u);
    std::vector<SlotShape> shapes = {{context, slots}};
    if (!slots_are_ours(target)) return shapes;
    if (!settings.parallel && slots > 1) shapes.push_back({context, 1});
    if (!settings.context && context > kSmallContext) shapes.push_back({kSmallContext, settings.parallel ? slots : 1});
    return shapes;
}

std::string engine_device_list(const std::vector<std::string>& devices) {
    std::vector<std::string> others;
    for (const std::string& device : devices)
        if (device != "CPU" && device != "cpu" && device != "none") others.push_back(device);
    return others.empty() ? "none" : joined(others);
}

std::vector<std::string> engine_arguments(const ModelTarget& target, const SlotShape& shape, bool offline) {
    const ModelConfig& settings = target.settings;
    const std::vector<std::string>& given = settings.arguments;
    std::vector<std::string> result = {"--model",
                                       target.entry.files.empty() ? "" : target.entry.files.front().string()};
    // of several names llama.cpp would answer with the first of the alphabet
    if (!names_option(given, {"-a", "--alias"})) result.insert(result.end(), {"--alias", target.id});
    if (!target.entry.projector.empty() && !names_option(given, {"-mm", "--mmproj", "--no-mmproj"}))
        result.insert(result.end(), {"--mmproj", target.entry.projector.string()});
    if (slots_are_ours(target)) {
        uint64_t total = std::min<uint64_t>(uint64_t{shape.context} * shape.slots, 1u << 30);
        result.insert(result.end(), {"--ctx-size", std::to_string(total), "--parallel", std::to_string(shape.slots)});
    }
    if (const std::string tandem = tandem_argument(target); !tandem.empty())
        result.insert(result.begin(), tandem);
    else if (!settings.devices.empty() && !names_option(given, {"-dev", "--device"}))
        result.insert(result.end(), {"--device", engine_device_list(settings.devices)});
    bool asked = names_option(given, {"--embedding", "--embeddings", "--rerank", "--reranking"});
    uint64_t pooling = asked ? 0 : pooling_type(target.entry);
    if (!asked && (pooling == 4 || embeds_only(target.entry.architecture) || (pooling >= 1 && pooling <= 3))) {
        result.push_back(pooling == 4 ? "--reranking" : "--embeddings");
        asked = true;
    }
    // a text to embed must fit into one physical batch
    if (asked && !names_option(given, {"-ub", "--ubatch-size", "-b", "--batch-size"})) {
        std::string batch = std::to_string(std::min<uint32_t>(shape.context, kDefaultContext));
        result.insert(result.end(), {"--batch-size", batch, "--ubatch-size", batch});
    } else if (const uint32_t batch = batch_of_cpu(target); batch > 0) {
        result.insert(result.end(), {"--batch-size", std::to_string(batch)});
    }
    if (offline) result.push_back("--offline");
    result.insert(result.end(), given.begin(), given.end());
    return result;
}

std::vector<std::string> plan_arguments(const ModelTarget& target, const SlotShape& shape) {
    const ModelConfig& settings = target.settings;
    const char* flag = "--ctx-size";
    std::string context = std::to_string(shape.context), slots = std::to_string(shape.slots);
    // llama.cpp's own arguments count where they decide; a number it would not take is for it to refuse
    auto given = [&](std::initializer_list<std::string_view> names, const std::string& fallback) {
        std::string value = option_value(settings.arguments, names);
        bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
        return is_number ? value : fallback;
    };
    if (!slots_are_ours(target)) {
        flag = "--shared-ctx-size";
        context = given({"-c", "--ctx-size"}, "0");
        slots = given({"-np", "--parallel"}, std::to_string(kDefaultSlots));
    }
    std::string file = target.entry.files.empty() ? "" : target.entry.files.front().string();
    std::vector<std::string> result = {"plan", file, "--json", flag, context, "--parallel", slots};
    if (std::string batch = given({"-ub", "--ubatch-size"}, ""); !batch.empty())
        result.insert(result.end(), {"--ubatch-size", batch});
    if (std::string type = option_value(settings.arguments, {"-ctk", "--cache-type-k"}); !type.empty())
        result.insert(result.end(), {"--cache-type-k", type});
    if (std::string type = option_value(settings.arguments, {"-ctv", "--cache-type-v"}); !type.empty())
        result.insert(result.end(), {"--cache-type-v", type});
    std::string devices = option_value(settings.arguments, {"-dev", "--device"});
    if (devices.empty() && !settings.devices.empty()) devices = engine_device_list(settings.devices);
    if (!devices.empty()) result.insert(result.end(), {"--device", devices});
    return result;
}

}  // namespace onebit
