#include "server/supervisor/ignored_fields.h"

#include <limits>

#include "server/supervisor/request_fields.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool holds_nothing(const JsonView& value) {
    if (value.kind() == Kind::array || value.kind() == Kind::object) return value.count(1) == 0;
    return value.text() == "\"\"" || value.text() == "false";
}

// Even an empty object asks for it.
bool never(const JsonView&) { return false; }

bool only_text(const JsonView& modalities) {
    if (modalities.kind() != Kind::array) return false;
    for (JsonView::Walk walk = modalities.walk(); walk.next();)
        if (!walk.value().is("text")) return false;
    return true;
}

// A choice of functions that asks for no call.
bool calls_none(const JsonView& choice) { return choice.is("none") || choice.is("auto"); }

struct Ignored {
    std::string_view name;
    unsigned routes;
    bool (*harmless)(const JsonView&);
    const char* expected;
    const char* remedy;
};

constexpr unsigned kText = kChatRoute | kCompletionRoute;
constexpr Ignored kIgnored[] = {
    {"echo", kCompletionRoute, holds_nothing, "false", "the prompt is not repeated in the answer"},
    {"suffix", kCompletionRoute, holds_nothing, "none", "/infill takes input_prefix and input_suffix"},
    {"prompt_logprobs", kText, holds_nothing, "none", "only tokens of the answer have probabilities: logprobs"},
    {"use_beam_search", kText, holds_nothing, "false", ""},
    {"functions", kChatRoute, holds_nothing, "tools",
     "a function is a tool {\"type\": \"function\", \"function\": ...}"},
    {"function_call", kChatRoute, calls_none, "tool_choice", "give tools and tool_choice"},
    {"modalities", kChatRoute, only_text, "[\"text\"]", "answers are text"},
    {"audio", kChatRoute, holds_nothing, "none", "answers are text"},
    {"web_search_options", kChatRoute, never, "none", "this server searches nothing"},
    {"conversation", kResponsesRoute, holds_nothing, "none", "this server keeps no answers; send all items as input"},
    {"background", kResponsesRoute, holds_nothing, "false", "this server keeps no answers"},
    {"prompt", kResponsesRoute, holds_nothing, "input and instructions", "this server keeps no prompts"},
    {"mcp_servers", kMessagesRoute, holds_nothing, "none", "this server runs no tools"},
    {"container", kMessagesRoute, holds_nothing, "none", "this server runs no tools"},
};

}  // namespace

Result<void> check_ignored(RequestRoute route, const RequestMembers& members) {
    for (const Ignored& one : kIgnored) {
        const JsonView* value = route & one.routes ? member_of(members, one.name) : nullptr;
        if (value && !one.harmless(*value)) return wrong_field(one.name, one.expected, value->described(), one.remedy);
    }
    const JsonView* best = route == kCompletionRoute ? member_of(members, "best_of") : nullptr;
    if (!best) return {};
    const JsonView* copies = member_of(members, "n");
    const int64_t n = copies ? copies->whole(1, kMost).value_or(1) : 1;
    if (best->whole(1, n)) return {};
    return wrong_field("best_of", "at most n, " + std::to_string(n), best->described(),
                       "all answers are sent, none is chosen");
}

}  // namespace onebit
