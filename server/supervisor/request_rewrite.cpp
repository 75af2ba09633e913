#include "server/supervisor/request_rewrite.h"

#include <unordered_set>

#include "server/supervisor/constraint_names.h"
#include "server/supervisor/ignored_fields.h"
#include "server/supervisor/input_items.h"
#include "server/supervisor/json_edits.h"
#include "server/supervisor/message_form.h"
#include "server/supervisor/request_members.h"
#include "server/supervisor/tool_choice.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

constexpr std::string_view kRead[] = {"messages",
                                      "input",
                                      "tools",
                                      "tool_choice",
                                      "stop",
                                      "logprobs",
                                      "top_logprobs",
                                      "json_schema",
                                      "grammar",
                                      "response_format",
                                      "guided_json",
                                      "guided_regex",
                                      "guided_choice",
                                      "guided_grammar",
                                      "regex",
                                      "ebnf",
                                      "format",
                                      "structured_outputs",
                                      "echo",
                                      "suffix",
                                      "best_of",
                                      "n",
                                      "prompt_logprobs",
                                      "use_beam_search",
                                      "functions",
                                      "function_call",
                                      "modalities",
                                      "audio",
                                      "web_search_options",
                                      "conversation",
                                      "background",
                                      "prompt",
                                      "mcp_servers",
                                      "container",
                                      "stop_sequences"};

// What a route cannot do without: check_fields() says what is wrong with a null there.
bool is_needed(RequestRoute route, std::string_view name) {
    switch (route) {
        case kChatRoute:
        case kMessagesRoute:
            return name == "messages";
        case kResponsesRoute:
            return name == "input";
        case kCompletionRoute:
            return name == "prompt";
        case kInfillRoute:
            return name == "input_prefix" || name == "input_suffix";
        case kTokenizeRoute:
            return name == "content";
        case kDetokenizeRoute:
            return name == "tokens";
        case kEmbeddingsRoute:
            return name == "input" || name == "content";
        default:
            return false;
    }
}

// The members that are read; those that are null are dropped.
RequestMembers members_of(RequestRoute route, const JsonView& body, JsonEdits& edits) {
    static const std::unordered_set<std::string_view> kNames(std::begin(kRead), std::end(kRead));
    RequestMembers members;
    std::unordered_set<std::string> nulls;
    for (JsonView::Walk walk = body.walk(); walk.next();) {
        const std::string unescaped = walk.escaped() ? walk.key() : std::string();
        const std::string_view name = walk.escaped() ? std::string_view(unescaped) : walk.raw_key();
        const JsonView value = walk.value();
        const auto known = kNames.find(name);
        if (known != kNames.end()) members.erase(*known);
        if (value.is_null() && !is_needed(route, name)) nulls.emplace(name);
        if (value.is_null()) continue;
        if (!nulls.empty()) nulls.erase(std::string(name));
        if (known != kNames.end()) members.emplace(*known, value);
    }
    for (const std::string& name : nulls) edits.drop(name);
    return members;
}

// llama.cpp takes an empty string for one that every text ends with.
void leave_out_empty_stops(const RequestMembers& members, const char* name, JsonEdits& edits) {
    const auto empty = [](const JsonView& value) { return value.is_null() || value.text() == "\"\""; };
    const JsonView* stop = member_of(members, name);
    if (!stop) return;
    if (empty(*stop)) edits.drop(name);
    if (stop->kind() == Kind::array)
        edits.cut(*stop, [&](const JsonView::Walk& walk, size_t) { return empty(walk.value()); });
}

}  // namespace

Result<RewrittenRequest> rewrite_request(RequestRoute route, const JsonView& body) {
    RewrittenRequest result;
    JsonEdits edits(body);
    const RequestMembers members = members_of(route, body, edits);
    if (route & (kSamplingRoutes | kMessagesRoute)) {
        ONEBIT_RETURN_IF_ERROR(check_ignored(route, members));
        Result<std::string> form = rewrite_constraint(route, members, edits);
        if (!form.ok()) return std::move(form).error();
        result.form = std::move(*form);
        leave_out_empty_stops(members, route == kMessagesRoute ? "stop_sequences" : "stop", edits);
    }
    if (route & (kTemplateRoutes | kMessagesRoute)) {
        if (const JsonView* tools = member_of(members, "tools"))
            ONEBIT_RETURN_IF_ERROR(rewrite_tools(route, *tools, edits));
        Result<bool> call = rewrite_tool_choice(route, members, edits);
        if (!call.ok()) return std::move(call).error();
        result.must_call = *call;
        const JsonView* messages = member_of(members, route == kResponsesRoute ? "input" : "messages");
        if (messages)
            ONEBIT_RETURN_IF_ERROR(route == kChatRoute        ? rewrite_messages(*messages, edits)
                                   : route == kResponsesRoute ? rewrite_input(*messages, edits)
                                                              : rewrite_blocks(*messages, edits));
    }
    const JsonView* logprobs = member_of(members, "logprobs");
    const JsonView* top = route & kTemplateRoutes ? member_of(members, "top_logprobs") : nullptr;
    if (top && top->whole(0, 0) && !(logprobs && logprobs->is_true())) edits.drop("top_logprobs");
    if (edits.empty()) return result;
    Result<std::string> changed = edits.applied();
    if (!changed.ok()) return std::move(changed).error();
    result.body = std::move(*changed);
    return result;
}

}  // namespace onebit
