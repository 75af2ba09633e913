// The part of a model's settings that measured routes have a say in.
#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "engine/route_choice.h"
#include "engine/route_table.h"
#include "server/supervisor/llama_options.h"
#include "server/supervisor/model_target.h"

namespace onebit {
namespace {

constexpr uint32_t kUbatch = 512;  // llama.cpp's default

uint32_t ubatch_of(const ModelConfig& settings) {
    uint32_t ubatch = kUbatch;
    const std::string given = option_value(settings.arguments, {"-ub", "--ubatch-size"});
    std::from_chars(given.data(), given.data() + given.size(), ubatch);
    return std::max(ubatch, 1u);
}

}  // namespace

bool has_tandem(const ModelConfig& settings) {
    return !settings.prefill_device.empty() && settings.devices.size() == 1 &&
           settings.prefill_device != settings.devices;
}

Result<std::string> stored_route_key(const ModelTarget& target, const std::vector<std::string>& members) {
    RouteKey key;
    key.model_files = target.entry.files;
    for (const std::string& member : members) {
        const auto known = target.device_identities.find(member);
        key.devices.push_back(known == target.device_identities.end() ? route_identity(member, "", "") : known->second);
    }
    const auto given = [&](std::initializer_list<std::string_view> names, std::string* to) {
        if (const std::string value = option_value(target.settings.arguments, names); !value.empty()) *to = value;
    };
    key.ubatch = ubatch_of(target.settings);
    given({"-ctk", "--cache-type-k"}, &key.cache_type_k);
    given({"-ctv", "--cache-type-v"}, &key.cache_type_v);
    given({"-fa", "--flash-attn"}, &key.flash_attention);
    given({"-t", "--threads"}, &key.threads);
    return route_key(key);
}

std::string tandem_argument(const ModelTarget& target) {
    const ModelConfig& settings = target.settings;
    if (!has_tandem(settings)) return "";
    const std::string &prefill = settings.prefill_device.front(), &decode = settings.devices.front();
    const uint32_t ubatch = ubatch_of(settings), given = settings.prefill_min_tokens.value_or(0);
    std::string text = "--onebit-tandem=prefill=" + prefill + ",decode=" + decode;
    if (given > 0) {
        text += ",min=" + std::to_string(std::min(given, ubatch));
    } else {
        text += ",min=auto,ubatch=" + std::to_string(ubatch);
        const auto key = stored_route_key(target, {prefill, decode});
        if (key)
            text += ",route=" + *key;
        else
            log_verbose("server", "auto: no stored route: " + key.error().message());
    }
    return text + (settings.strict.value_or(false) ? ",strict=1" : "");
}

std::string use_stored_route(ModelTarget* target) {
    ModelConfig& settings = target->settings;
    if (settings.open_devices.size() < 2 || names_option(settings.arguments, {"-dev", "--device"})) return "";
    // the two that `1bit tune` measures
    const std::vector<std::string> members(settings.open_devices.begin(), settings.open_devices.begin() + 2);
    const std::string fallback =
        (settings.devices.empty() ? members.front() : settings.devices.front()) + " for everything: ";
    const auto key = stored_route_key(*target, members);
    if (!key) return fallback + key.error().message();
    auto tables = open_route_tables();
    if (!tables) return fallback + tables.error().message();
    const auto table = load_route_table(*tables, *key, members);
    if (!table) return fallback + "nothing was measured yet; 1bit tune " + target->id + " does";
    const auto choice = choose_route(*table, {});
    if (!choice) return fallback + choice.error().message();
    settings.devices = {choice->decode};
    if (choice->split()) {
        settings.prefill_device = {choice->prefill};
        settings.prefill_min_tokens = choice->min_tokens;
    }
    return choice->reason;
}

}  // namespace onebit
