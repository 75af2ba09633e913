#include "server/supervisor/request_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "server/supervisor/request_fields.h"
#include "server/supervisor/trigger_pattern.h"

namespace onebit {
namespace {

constexpr int64_t kInt32 = std::numeric_limits<int32_t>::max();
constexpr size_t kMostText = 16u << 20;

std::string element(const std::string& path, size_t i) { return path + "[" + std::to_string(i) + "]"; }

struct ListLimits {
    size_t elements;
    size_t bytes;       // of each
    bool nul = true;    // whether it may hold one: the engine ends some texts there
    bool null = false;  // whether an element may be null, and is then passed over
};

Result<void> list_of_strings(const JsonView& value, const std::string& path, const ListLimits& limits) {
    if (value.kind() != JsonView::Kind::array) return wrong_field(path, "a list of strings", value.described());
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        const JsonView one = walk.value();
        if (i == limits.elements)
            return wrong_field(path, "at most " + std::to_string(limits.elements) + " strings", "more");
        if (limits.null && one.is_null()) continue;
        if (!one.is_string()) return wrong_field(element(path, i), "a string", one.described());
        if (one.text().size() > limits.bytes)
            return wrong_field(element(path, i), "a string of at most " + std::to_string(limits.bytes) + " bytes",
                               "one of " + std::to_string(one.text().size()));
        if (!limits.nul && one.string().find('\0') != std::string::npos)
            return wrong_field(element(path, i), "text without the character U+0000", "one with");
    }
    return {};
}

Result<void> one_of(const JsonView& value, const std::string& path, std::initializer_list<std::string_view> names) {
    const std::string found = value.string();
    std::string list;
    for (std::string_view name : names) {
        if (value.is_string() && found == name) return {};
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    return wrong_field(path, "one of " + list, value.described());
}

Result<void> token(const JsonView& value, const std::string& path) {
    if (value.is_integer() && value.whole(0, kInt32)) return {};
    return wrong_field(path, "a token, a whole number from 0 to 2147483647", value.described());
}

// Text that a tokenizer goes through: more is above any context, and takes it minutes.
Result<void> bounded_text(size_t bytes, const std::string& path) {
    if (bytes <= kMostText) return {};
    return wrong_field(path, "at most 16 MiB of text", "more");
}

// Tokens, texts, or both: what the engine makes one prompt of.
Result<void> tokens_and_texts(const JsonView& list, const std::string& path) {
    size_t i = 0;
    for (JsonView::Walk walk = list.walk(); walk.next(); i++)
        if (!walk.value().is_string()) ONEBIT_RETURN_IF_ERROR(token(walk.value(), element(path, i)));
    return {};
}

Result<void> one_prompt(const JsonView& value, const std::string& path) {
    if (value.is_string()) return bounded_text(value.text().size(), path);
    if (value.kind() == JsonView::Kind::array) return tokens_and_texts(value, path);
    if (value.kind() == JsonView::Kind::object) {
        const auto text = value.member("prompt_string");
        if (text) return check_tokens_or_text(*text, path + ".prompt_string");
    }
    return wrong_field(path, "a string, a list of tokens or an object with prompt_string", value.described());
}

// Roles of the public APIs, and of templates of models that have some of their own.
bool known_role(std::string_view role) {
    constexpr std::array<std::string_view, 19> kRoles = {
        "system",          "developer",     "user",      "assistant",   "tool",           "function", "model",
        "ipython",         "observation",   "control",   "context",     "search",         "critic",   "thinking",
        "available_tools", "tool_response", "tool_call", "environment", "latest_reminder"};
    // some templates have the document's data in the name of the role
    return role.starts_with("document") || std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
}

// Bytes of text in a message's content; what is no text, such as an image, does not count.
size_t text_bytes(const JsonView& content) {
    if (content.is_string()) return content.text().size();
    size_t bytes = 0;
    for (JsonView::Walk walk = content.walk(); content.kind() == JsonView::Kind::array && walk.next();)
        if (const auto text = walk.value().member("text")) bytes += text->text().size();
    return bytes;
}

Result<void> role_of(const JsonView& role, const std::string& path) {
    if (role.is_null()) return {};  // the engine says what is missing
    if (!role.is_string()) return wrong_field(path, "a string", role.described());
    if (known_role(role.string())) return {};
    return wrong_field(path, "system, developer, user, assistant, tool or function", role.described());
}

Result<void> list_of_messages(const JsonView& list, const std::string& path) {
    constexpr size_t kMost = 8000;
    size_t i = 0, bytes = 0;
    for (JsonView::Walk walk = list.walk(); walk.next(); i++) {
        if (i == kMost) return wrong_field(path, "at most 8000 messages", "more", "leave out the oldest");
        if (walk.value().kind() != JsonView::Kind::object) continue;  // the engine says so
        for (JsonView::Walk member = walk.value().walk(); member.next();) {
            if (member.named("content")) bytes += text_bytes(member.value());
            if (member.named("role")) ONEBIT_RETURN_IF_ERROR(role_of(member.value(), element(path, i) + ".role"));
        }
    }
    return bounded_text(bytes, path);
}

Result<void> trigger(const JsonView& value, const std::string& path) {
    const auto type = value.member("type"), text = value.member("value"), id = value.member("token");
    const auto kind = type ? type->whole(0, 3) : std::nullopt;
    if (!kind)
        return wrong_field(path + ".type", "0 (token), 1 (word), 2 (pattern) or 3 (pattern of all)",
                           type ? type->described() : "none");
    if (!text || !text->is_string()) return wrong_field(path + ".value", "a string", text ? text->described() : "none");
    if (*kind == 0) return id ? token(*id, path + ".token") : wrong_field(path + ".token", "a token", "none");
    if (text->text().size() > kMostTriggerBytes)
        return wrong_field(path + ".value", "at most " + std::to_string(kMostTriggerBytes) + " bytes",
                           std::to_string(text->text().size()));
    const std::string pattern = text->string();
    if (pattern.find('\0') != std::string::npos)
        return wrong_field(path + ".value", "text without the character U+0000", "one with");
    if (*kind == 1) return {};
    auto fault = trigger_pattern_fault(pattern);
    return fault ? wrong_field(path + ".value", std::move(fault->expected), std::move(fault->found),
                               std::move(fault->remedy))
                 : Result<void>{};
}

}  // namespace

Result<void> check_stop(const JsonView& value, const std::string& path) {
    constexpr size_t kMost = 8192;
    if (value.kind() == JsonView::Kind::array) return list_of_strings(value, path, {1024, kMost, true, true});
    if (!value.is_string()) return wrong_field(path, "a string or a list of strings", value.described());
    if (value.text().size() <= kMost) return {};
    return wrong_field(path, "a string of at most 8192 bytes", "one of " + std::to_string(value.text().size()));
}

Result<void> check_stream_options(const JsonView& value, const std::string& path) {
    if (value.kind() != JsonView::Kind::object) return wrong_field(path, "an object", value.described());
    const auto usage = value.member("include_usage");
    if (!usage || usage->kind() == JsonView::Kind::boolean) return {};
    return wrong_field(path + ".include_usage", "true or false", usage->described());
}

Result<void> check_response_fields(const JsonView& value, const std::string& path) {
    return list_of_strings(value, path, {256, 1024});
}

Result<void> check_dry_sequence_breakers(const JsonView& value, const std::string& path) {
    if (value.kind() == JsonView::Kind::array && value.count(1) == 0)
        return wrong_field(path, "at least one string", "an empty list");
    return list_of_strings(value, path, {64, 1024, false});
}

Result<void> check_samplers(const JsonView& value, const std::string& path) {
    constexpr size_t kMost = 32;
    constexpr std::string_view kLetters = "dkypsmtxiea";
    constexpr std::array<std::string_view, 11> kNames = {"dry",    "top_k",     "top_p",       "top_n_sigma",
                                                         "typ_p",  "min_p",     "temperature", "xtc",
                                                         "infill", "penalties", "adaptive_p"};
    const auto known = [&](std::string name) {
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
        if (name == "nucleus" || name == "temp" || name == "typ") return true;
        return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view canonical) {
            std::string kebab(canonical), joined(canonical);
            std::replace(kebab.begin(), kebab.end(), '_', '-');
            joined.erase(std::remove(joined.begin(), joined.end(), '_'), joined.end());
            return name == canonical || name == kebab || name == joined;
        });
    };
    if (value.is_string()) {
        const std::string letters = value.string();
        if (letters.size() > kMost) return wrong_field(path, "at most 32 letters", "more");
        const size_t at = letters.find_first_not_of(kLetters);
        if (at == std::string::npos) return {};
        return wrong_field(path, "letters of samplers, of '" + std::string(kLetters) + "'", value.described(),
                           "or a list of names such as [\"top_k\", \"temperature\"]");
    }
    ONEBIT_RETURN_IF_ERROR(list_of_strings(value, path, {kMost, 64}));
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        if (known(walk.value().string())) continue;
        std::string list;
        for (std::string_view name : kNames) list += (list.empty() ? "" : ", ") + std::string(name);
        return wrong_field(element(path, i), "one of " + list, walk.value().described());
    }
    return {};
}

Result<void> check_logit_bias(const JsonView& value, const std::string& path) {
    constexpr size_t kMost = 262'144;
    constexpr double kMostBias = 1e6;  // many of them for one token add up
    const auto bias = [&](const JsonView& one, const std::string& where) -> Result<void> {
        if (one.text() == "false") return {};
        if (one.kind() == JsonView::Kind::number && std::fabs(one.number()) <= kMostBias) return {};
        return wrong_field(where, "a number from -1000000 to 1000000, or false", one.described());
    };
    size_t i = 0;
    if (value.kind() == JsonView::Kind::object) {
        for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
            const std::string key = walk.key();
            const std::string where = path + "." + key.substr(0, 60);
            const size_t first = key.find_first_not_of("+-");
            int64_t id = 0;
            const bool number = !key.empty() && first != std::string::npos &&
                                key.find_first_not_of("0123456789", first) == std::string::npos && first <= 1;
            if (number) {
                const char* begin = key.data() + (key.front() == '+' ? 1 : 0);
                const auto [end, fault] = std::from_chars(begin, key.data() + key.size(), id);
                if (fault != std::errc() || id < 0 || id > kInt32)
                    return wrong_field(where, "a token, a whole number from 0 to 2147483647",
                                       "'" + key.substr(0, 24) + "'");
            }
            ONEBIT_RETURN_IF_ERROR(bias(walk.value(), where));
        }
        return {};
    }
    if (value.kind() != JsonView::Kind::array)
        return wrong_field(path, "an object, or a list of [token, bias]", value.described());
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        if (i == kMost) return wrong_field(path, "at most 262144 tokens", "more");
        const std::string where = element(path, i);
        if (walk.value().kind() != JsonView::Kind::array || walk.value().count(3) != 2)
            return wrong_field(where, "[token, bias]", walk.value().described());
        JsonView::Walk pair = walk.value().walk();
        pair.next();
        if (!pair.value().is_string()) ONEBIT_RETURN_IF_ERROR(token(pair.value(), where + "[0]"));
        pair.next();
        ONEBIT_RETURN_IF_ERROR(bias(pair.value(), where + "[1]"));
    }
    return {};
}

bool bans_tokens(const JsonView& logit_bias) {
    for (JsonView::Walk walk = logit_bias.walk(); walk.next();) {
        JsonView bias = walk.value();
        if (bias.kind() == JsonView::Kind::array)
            for (JsonView::Walk pair = walk.value().walk(); pair.next();) bias = pair.value();
        if (bias.text() == "false") return true;
    }
    return false;
}

Result<void> check_lora(const JsonView& value, const std::string& path) {
    constexpr size_t kMost = 1024;
    if (value.kind() != JsonView::Kind::array)
        return wrong_field(path, "a list of objects with id and scale", value.described());
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        const std::string where = element(path, i);
        if (i == kMost) return wrong_field(path, "at most 1024 adapters", "more");
        if (walk.value().kind() != JsonView::Kind::object)
            return wrong_field(where, "an object with id and scale", walk.value().described());
        const auto id = walk.value().member("id"), scale = walk.value().member("scale");
        if (!id || !id->whole(0, kInt32))
            return wrong_field(where + ".id", "the number of an adapter, 0 or more", id ? id->described() : "none");
        if (scale && !scale->is_float()) return wrong_field(where + ".scale", "a number", scale->described());
    }
    return {};
}

Result<void> check_grammar_triggers(const JsonView& value, const std::string& path) {
    if (value.kind() != JsonView::Kind::array) return wrong_field(path, "a list of triggers", value.described());
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        if (i == 64) return wrong_field(path, "at most 64 triggers", "more");
        ONEBIT_RETURN_IF_ERROR(trigger(walk.value(), element(path, i)));
    }
    return {};
}

Result<void> check_preserved_tokens(const JsonView& value, const std::string& path) {
    return list_of_strings(value, path, {4096, 4096});
}

Result<void> check_tags(const JsonView& value, const std::string& path) {
    return list_of_strings(value, path, {64, 4096});
}

Result<void> check_delimiters(const JsonView& value, const std::string& path) {
    if (value.kind() != JsonView::Kind::array) return wrong_field(path, "a list of objects", value.described());
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        if (i == 64) return wrong_field(path, "at most 64 delimiters", "more");
        for (const char* key : {"role", "delimiter"})
            if (const auto text = walk.value().member(key); !text || !text->is_string() || text->text().size() > 1024)
                return wrong_field(element(path, i) + "." + key, "a string of at most 1024 bytes",
                                   text ? text->described() : "none");
    }
    return {};
}

Result<void> check_messages(const JsonView& value, const std::string& path) {
    if (value.kind() != JsonView::Kind::array) return wrong_field(path, "a list of messages", value.described());
    if (value.count(1) == 0) return wrong_field(path, "at least one message", "an empty list");
    return list_of_messages(value, path);
}

Result<void> check_input(const JsonView& value, const std::string& path) {
    if (value.is_string()) return bounded_text(value.text().size(), path);
    if (value.kind() != JsonView::Kind::array)
        return wrong_field(path, "a string or a list of items", value.described());
    if (value.count(1) == 0) return wrong_field(path, "at least one item", "an empty list");
    return list_of_messages(value, path);
}

Result<void> check_continuation(const JsonView& value, const std::string& path) {
    if (value.kind() == JsonView::Kind::boolean) return {};
    return one_of(value, path, {"true", "false", "content", "reasoning_content"});
}

Result<void> check_tool_choice(const JsonView& value, const std::string& path) {
    return one_of(value, path, {"auto", "none", "required"});
}

Result<void> check_reasoning_format(const JsonView& value, const std::string& path) {
    return one_of(value, path, {"none", "auto", "deepseek", "deepseek-legacy"});
}

Result<void> check_encoding_format(const JsonView& value, const std::string& path) {
    return one_of(value, path, {"float", "base64"});
}

Result<void> check_prompt(const JsonView& value, const std::string& path) {
    constexpr size_t kMost = 4096;
    if (value.kind() != JsonView::Kind::array) return one_prompt(value, path);
    bool has_tokens = false;
    for (JsonView::Walk walk = value.walk(); walk.next() && !has_tokens;)
        has_tokens = walk.value().kind() == JsonView::Kind::number;
    if (has_tokens) return tokens_and_texts(value, path);
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        if (i == kMost) return wrong_field(path, "at most 4096 prompts", "more", "send them in several requests");
        ONEBIT_RETURN_IF_ERROR(one_prompt(walk.value(), element(path, i)));
    }
    return i == 0 ? wrong_field(path, "at least one prompt", "an empty list") : Result<void>{};
}

Result<void> check_tokens_or_text(const JsonView& value, const std::string& path) {
    if (value.is_string()) return bounded_text(value.text().size(), path);
    if (value.kind() == JsonView::Kind::array) return tokens_and_texts(value, path);
    return wrong_field(path, "a string or a list of strings and tokens", value.described());
}

Result<void> check_tokens(const JsonView& value, const std::string& path) {
    if (value.kind() != JsonView::Kind::array) return wrong_field(path, "a list of tokens", value.described());
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++)
        ONEBIT_RETURN_IF_ERROR(token(walk.value(), element(path, i)));
    return {};
}

Result<void> check_documents(const JsonView& value, const std::string& path) {
    return list_of_strings(value, path, {4096, std::numeric_limits<size_t>::max()});
}

Result<void> refuse_internal(const JsonView&, const std::string& path) {
    return wrong_field(path, "none", "it", "the engine makes it from the chat template");
}

}  // namespace onebit
