#include "server/supervisor/request_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/supervisor/request_values.h"

namespace onebit {
namespace {

constexpr int64_t kInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt64 = std::numeric_limits<int64_t>::max();
// above any context, and far enough from the end of 32 bits for the engine to add to it
constexpr int64_t kTokens = 1'000'000'000;
// the engine allocates 4 to 8 bytes for each, whatever its context is
constexpr int64_t kWindow = 1 << 20;

// a larger one leaves the engine without any token to choose
constexpr int64_t kPenalty = 1'000'000;

enum class Kind { boolean, integer, number, text, object, name, boolean_or_integer, other };

struct Field {
    std::string_view name;
    unsigned routes;
    Kind kind;
    int64_t least = 0, most = 0;                                           // integers
    Result<void> (*check)(const JsonView&, const std::string&) = nullptr;  // other
    bool takes_null = true;
};

Field flag(std::string_view name, unsigned routes = kSamplingRoutes) { return {name, routes, Kind::boolean}; }
Field integer(std::string_view name, int64_t least, int64_t most, unsigned routes = kSamplingRoutes) {
    return {name, routes, Kind::integer, least, most};
}
// most: above and below 0, none but that of 32 bits for 0
Field number(std::string_view name, unsigned routes = kSamplingRoutes, int64_t most = 0) {
    return {name, routes, Kind::number, 0, most};
}
Field text(std::string_view name, unsigned routes = kSamplingRoutes) { return {name, routes, Kind::text}; }
Field special(std::string_view name, Result<void> (*check)(const JsonView&, const std::string&),
              unsigned routes = kSamplingRoutes, bool takes_null = true) {
    return {name, routes, Kind::other, 0, 0, check, takes_null};
}

const std::unordered_map<std::string_view, std::vector<Field>>& table() {
    constexpr unsigned kLimits = kSamplingRoutes | kMessagesRoute;
    static const auto* const fields = [] {
        auto* by_name = new std::unordered_map<std::string_view, std::vector<Field>>();
        for (const Field& field : {
                 Field{"model", kEveryRoute, Kind::name},
                 // what is answered
                 flag("stream", kLimits),
                 flag("verbose"),
                 flag("timings_per_token"),
                 flag("cache_prompt"),
                 flag("return_tokens"),
                 flag("return_progress"),
                 flag("echo"),
                 special("stream_options", check_stream_options),
                 special("response_fields", check_response_fields),
                 integer("sse_ping_interval", -1, kInt32),
                 // how much is generated
                 integer("n_predict", -1, kInt32),
                 integer("max_completion_tokens", -1, kInt32),
                 integer("max_tokens", -1, kInt32, kLimits),
                 integer("max_output_tokens", -1, kInt32, kResponsesRoute),
                 integer("n_indent", 0, kInt32),
                 integer("n_keep", -1, kTokens),
                 integer("n_discard", 0, kTokens),
                 integer("n_cmpl", 1, kInt32),
                 integer("n", 1, kInt32),
                 integer("n_cache_reuse", 0, kInt32),
                 integer("t_max_predict_ms", -1, kInt64),
                 special("stop", check_stop),
                 special("stop_sequences", check_stop, kMessagesRoute),
                 flag("ignore_eos"),
                 // samplers
                 integer("top_k", -kInt32, kInt32, kLimits),
                 number("top_p", kLimits),
                 number("min_p"),
                 number("top_n_sigma"),
                 number("xtc_probability"),
                 number("xtc_threshold"),
                 number("typical_p"),
                 number("temperature", kLimits),
                 number("dynatemp_range"),
                 number("dynatemp_exponent"),
                 integer("repeat_last_n", 0, kWindow),
                 number("repeat_penalty", kSamplingRoutes, kPenalty),
                 number("frequency_penalty", kSamplingRoutes, kPenalty),
                 number("presence_penalty", kSamplingRoutes, kPenalty),
                 number("dry_multiplier", kSamplingRoutes, kPenalty),
                 number("dry_base"),
                 integer("dry_allowed_length", 0, kInt32),
                 integer("dry_penalty_last_n", 0, kWindow),
                 special("dry_sequence_breakers", check_dry_sequence_breakers),
                 integer("mirostat", 0, 2),
                 number("mirostat_tau"),
                 number("mirostat_eta"),
                 number("adaptive_target"),
                 number("adaptive_decay"),
                 // wraps in the engine, and is a seed all the same
                 integer("seed", std::numeric_limits<int64_t>::min(), kInt64),
                 integer("min_keep", 0, kInt32),
                 flag("backend_sampling"),
                 flag("post_sampling_probs"),
                 special("samplers", check_samplers),
                 special("logit_bias", check_logit_bias),
                 special("lora", check_lora),
                 integer("n_probs", 0, kInt32),
                 Field{"logprobs", kSamplingRoutes, Kind::boolean_or_integer, 0, kInt32},
                 integer("top_logprobs", 0, kInt32, kTemplateRoutes),
                 // grammars
                 flag("grammar_lazy"),
                 text("grammar_type"),
                 special("grammar_triggers", check_grammar_triggers),
                 special("preserved_tokens", check_preserved_tokens),
                 // chats
                 special("messages", check_messages, kChatRoute | kMessagesRoute, false),
                 special("input", check_input, kResponsesRoute, false),
                 flag("add_generation_prompt", kTemplateRoutes),
                 flag("parallel_tool_calls", kTemplateRoutes),
                 special("continue_final_message", check_continuation),
                 Field{"chat_template_kwargs", kTemplateRoutes | kMessagesRoute, Kind::object},
                 special("tool_choice", check_tool_choice, kTemplateRoutes),
                 Field{"tool_choice", kMessagesRoute, Kind::object},
                 Field{"thinking", kMessagesRoute, Kind::object},
                 special("reasoning_format", check_reasoning_format, kTemplateRoutes, false),
                 special("reasoning_format", check_reasoning_format, kCompletionRoute | kInfillRoute),
                 text("reasoning_effort", kTemplateRoutes),
                 flag("reasoning_control"),
                 integer("reasoning_budget_tokens", -1, kInt32),
                 integer("thinking_budget_tokens", -1, kInt32, kTemplateRoutes),
                 text("reasoning_budget_start_tag"),
                 text("reasoning_budget_message"),
                 text("reasoning_budget_end_tag"),
                 special("reasoning_budget_end_tags", check_tags),
                 integer("chat_format", 0, 4),
                 flag("parse_tool_calls"),
                 special("chat_parser", refuse_internal),
                 special("generation_prompt", refuse_internal, kCompletionRoute | kInfillRoute),
                 special("message_delimiters", check_delimiters, kCompletionRoute | kInfillRoute),
                 text("instructions", kResponsesRoute),
                 text("previous_response_id", kResponsesRoute),
                 // a slot that the server does not have is counted round by the engine
                 integer("id_slot", -1, 65535),
                 // prompts
                 special("prompt", check_prompt, kCompletionRoute, false),
                 special("input_prefix", check_tokens_or_text, kInfillRoute, false),
                 special("input_suffix", check_tokens_or_text, kInfillRoute, false),
                 special("content", check_tokens_or_text, kTokenizeRoute, false),
                 flag("add_special", kTokenizeRoute),
                 flag("parse_special", kTokenizeRoute),
                 flag("with_pieces", kTokenizeRoute),
                 special("tokens", check_tokens, kDetokenizeRoute, false),
                 special("input", check_prompt, kEmbeddingsRoute, false),
                 special("content", check_prompt, kEmbeddingsRoute, false),
                 special("encoding_format", check_encoding_format, kEmbeddingsRoute, false),
                 integer("embd_normalize", -1, kInt32, kEmbeddingsRoute),
                 special("documents", check_documents, kRerankRoute),
                 special("texts", check_documents, kRerankRoute),
                 flag("return_text", kRerankRoute),
                 integer("top_n", 0, kInt32, kRerankRoute),
             })
            (*by_name)[field.name].push_back(field);
        return by_name;
    }();
    return *fields;
}

std::string range(int64_t least, int64_t most) {
    if (least == std::numeric_limits<int64_t>::min()) return "a whole number of at most 64 bits";
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

// A number of 64 bits without a sign is a seed too.
bool is_seed(const Field& field, const JsonView& value) {
    uint64_t seed = 0;
    const std::string_view text = value.text();
    return field.least == std::numeric_limits<int64_t>::min() && value.is_integer() &&
           std::from_chars(text.data(), text.data() + text.size(), seed).ec == std::errc();
}

Result<void> check_field(const Field& field, const JsonView& value) {
    const std::string path(field.name);
    if (value.is_null() && field.takes_null) return {};
    const bool is_boolean = value.kind() == JsonView::Kind::boolean;
    switch (field.kind) {
        case Kind::boolean:
            if (is_boolean) return {};
            return wrong_field(path, "true or false", value.described());
        case Kind::boolean_or_integer:
            if (is_boolean || value.whole(field.least, field.most)) return {};
            return wrong_field(path, "true, false or " + range(field.least, field.most), value.described());
        case Kind::integer:
            if (value.whole(field.least, field.most) || is_seed(field, value)) return {};
            return wrong_field(path, range(field.least, field.most), value.described());
        case Kind::number:
            if (value.is_float() && (field.most == 0 || std::fabs(value.number()) <= static_cast<double>(field.most)))
                return {};
            return wrong_field(
                path,
                field.most == 0 ? "a number that fits into 32 bits"
                                : "a number from -" + std::to_string(field.most) + " to " + std::to_string(field.most),
                value.described());
        case Kind::text:
            if (value.is_string()) return {};
            return wrong_field(path, "a string", value.described());
        case Kind::object:
            if (value.kind() == JsonView::Kind::object) return {};
            return wrong_field(path, "an object", value.described());
        case Kind::name: {
            if (!value.is_string()) return wrong_field(path, "a string", value.described());
            if (value.string().find('\0') == std::string::npos) return {};
            return wrong_field(path, "a name without the character U+0000", "one with");
        }
        case Kind::other:
            break;
    }
    return field.check(value, path);
}

// Each of n_probs names with its text is kept for each token until the answer is complete.
Result<void> check_probabilities(const JsonView& body) {
    constexpr int64_t kFree = 1000, kMost = 1'000'000;
    for (const char* name : {"n_probs", "logprobs", "top_logprobs"}) {
        const auto given = body.member(name);
        const int64_t each = given ? given->whole(0, kInt32).value_or(0) : 0;
        if (each <= kFree) continue;
        int64_t tokens = kMost;
        for (const char* limit : {"n_predict", "max_completion_tokens", "max_tokens", "max_output_tokens"})
            if (const auto most = body.member(limit))
                if (const auto n = most->whole(0, kInt32)) tokens = std::min(tokens, *n);
        if (each > kMost || each * tokens > kMost)
            return wrong_field(name, "at most 1000, or at most 1000000 together with max_tokens times as many",
                               given->described(), "set max_tokens");
    }
    return {};
}

// The sampler that runs beside the model ends the engine when it shall keep more tokens than the model has.
Result<void> check_backend_sampling(const JsonView& body) {
    constexpr int64_t kMost = 1000;
    const auto wanted = body.member("backend_sampling"), top = body.member("top_k");
    if (!wanted || !wanted->is_true() || !top || top->whole(-kInt32, kMost)) return {};
    return wrong_field("top_k", "at most 1000 with backend_sampling", top->described());
}

// The copies of an empty prompt wait for ever for the first of them.
Result<void> check_copies(const JsonView& body) {
    const auto is_empty = [](const JsonView& prompt) {
        return prompt.text() == "\"\"" || (prompt.kind() == JsonView::Kind::array && prompt.count(1) == 0);
    };
    for (const char* name : {"n_cmpl", "n"}) {
        const auto copies = body.member(name), prompt = body.member("prompt");
        if (!copies || copies->whole(1, 1) || !prompt) continue;
        bool empty = is_empty(*prompt);
        for (JsonView::Walk walk = prompt->walk(); prompt->kind() == JsonView::Kind::array && !empty && walk.next();)
            empty = is_empty(walk.value());
        if (empty) return wrong_field(name, "1 with an empty prompt", copies->described());
    }
    return {};
}

}  // namespace

Error wrong_field(std::string_view path, std::string expected, std::string found, std::string remedy) {
    return {ErrorCode::usage, "field '" + std::string(path) + "'", std::move(expected), std::move(found),
            std::move(remedy)};
}

Result<void> check_fields(RequestRoute route, const JsonView& body) {
    if (route == kLoraRoute) return body.kind() == JsonView::Kind::array ? check_lora(body, "body") : Result<void>{};
    bool probabilities = false, backend = false, copies = false;
    const auto& fields = table();
    for (JsonView::Walk member = body.walk(); member.next();) {
        const std::string unescaped = member.escaped() ? member.key() : std::string();
        const auto entry = fields.find(member.escaped() ? std::string_view(unescaped) : member.raw_key());
        if (entry == fields.end()) continue;
        probabilities = probabilities || entry->first == "n_probs" || entry->first.ends_with("logprobs");
        backend = backend || entry->first == "backend_sampling";
        copies = copies || entry->first == "n_cmpl" || entry->first == "n";
        for (const Field& field : entry->second)
            if (field.routes & route) ONEBIT_RETURN_IF_ERROR(check_field(field, member.value()));
    }
    if (!(route & kSamplingRoutes)) return {};
    if (copies && route == kCompletionRoute) ONEBIT_RETURN_IF_ERROR(check_copies(body));
    if (backend) ONEBIT_RETURN_IF_ERROR(check_backend_sampling(body));
    return probabilities ? check_probabilities(body) : Result<void>{};
}

}  // namespace onebit
