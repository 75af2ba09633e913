#include "server/supervisor/tool_choice.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "server/supervisor/request_fields.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

enum class Mode { automatic, none, required };

struct Choice {
    Mode mode = Mode::automatic;
    std::vector<std::string> names;  // empty: all tools
    std::string path;                // of the names
};

// The name of a tool that the engine will know, or of a choice of one; both APIs of OpenAI.
std::optional<std::string> name_of(RequestRoute route, const JsonView& tool) {
    if (route != kMessagesRoute) {
        const auto type = tool.member("type"), function = tool.member("function");
        if (!type || type->string() != "function") return {};
        if (function)
            if (const auto name = function->member("name"); name && name->is_string()) return name->string();
    }
    const auto name = tool.member("name");
    return name && name->is_string() ? std::optional(name->string()) : std::nullopt;
}

std::vector<std::string> names_of(RequestRoute route, const JsonView* tools) {
    std::vector<std::string> names;
    if (tools && tools->kind() == Kind::array)
        for (JsonView::Walk walk = tools->walk(); walk.next();)
            if (auto name = name_of(route, walk.value())) names.push_back(std::move(*name));
    return names;
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t kMost = 12, kLongest = 64;
    std::string list;
    for (size_t i = 0; i < std::min(names.size(), kMost); i++)
        list += (i ? ", '" : "'") + names[i].substr(0, kLongest) + "'";
    if (names.size() > kMost) list += " and " + std::to_string(names.size() - kMost) + " more";
    return list;
}

Error unknown(const std::string& path, const JsonView& value, std::string expected) {
    return wrong_field(path, std::move(expected), value.described());
}

Result<Choice> choice_of_names(RequestRoute route, const JsonView& value, const std::string& type) {
    Choice choice;
    choice.mode = Mode::required;
    if (type != "allowed_tools") {
        const bool inner = route == kChatRoute;
        choice.path = inner ? "tool_choice.function.name" : "tool_choice.name";
        const auto function = value.member("function");
        const auto name = function ? function->member("name") : value.member("name");
        if (!name || !name->is_string())
            return wrong_field(choice.path, "the name of a tool", name ? name->described() : "none");
        choice.names.push_back(name->string());
        return choice;
    }
    const auto wrapper = value.member("allowed_tools");
    const JsonView& owner = wrapper ? *wrapper : value;
    choice.path = wrapper ? "tool_choice.allowed_tools.tools" : "tool_choice.tools";
    const auto mode = owner.member("mode"), tools = owner.member("tools");
    if (!mode || (mode->string() != "auto" && mode->string() != "required"))
        return wrong_field(wrapper ? "tool_choice.allowed_tools.mode" : "tool_choice.mode", "auto or required",
                           mode ? mode->described() : "none");
    if (mode->string() == "auto") choice.mode = Mode::automatic;
    if (!tools || tools->kind() != Kind::array || tools->count(1) == 0)
        return wrong_field(choice.path, "a list of functions", tools ? tools->described() : "none");
    size_t i = 0;
    for (JsonView::Walk walk = tools->walk(); walk.next(); i++) {
        auto name = name_of(route, walk.value());
        if (!name)
            return unknown(element_path(choice.path, i), walk.value(), "an object with the type function and a name");
        choice.names.push_back(std::move(*name));
    }
    return choice;
}

Result<Choice> choice_of(RequestRoute route, const JsonView& value) {
    const bool messages = route == kMessagesRoute;
    const std::string path = value.is_string() ? "tool_choice" : "tool_choice.type";
    const auto type = value.is_string() ? std::optional(value) : value.member("type");
    const std::string word = type ? type->string() : std::string();
    if (word == "auto") return Choice{};
    if (word == "none") return Choice{Mode::none, {}, {}};
    if (word == "any" || (word == "required" && !messages)) return Choice{Mode::required, {}, {}};
    if (value.kind() == Kind::object &&
        (word == "tool" || (!messages && (word == "function" || word == "allowed_tools"))))
        return choice_of_names(route, value, word);
    if (value.kind() != Kind::object && !value.is_string())
        return unknown("tool_choice", value, "auto, none, required or an object");
    return wrong_field(path,
                       messages            ? "auto, any, tool or none"
                       : value.is_string() ? "auto, none, required or an object"
                                           : "function, allowed_tools, auto, none or required",
                       type ? type->described() : "none");
}

}  // namespace

Result<bool> rewrite_tool_choice(RequestRoute route, const RequestMembers& members, JsonEdits& edits) {
    const JsonView* given = member_of(members, "tool_choice");
    const JsonView* tools = member_of(members, "tools");
    if (!given || (route == kMessagesRoute && given->kind() != Kind::object)) return false;
    Result<Choice> choice = choice_of(route, *given);
    if (!choice.ok()) return std::move(choice).error();
    if (route == kMessagesRoute && choice->mode == Mode::none) {
        edits.drop("tools");
        edits.drop("tool_choice");
        return false;
    }
    const bool required = choice->mode == Mode::required;
    if (required || !choice->names.empty()) {
        const std::vector<std::string> known = names_of(route, tools);
        if (known.empty()) return wrong_field("tool_choice", "auto or none without tools", given->described());
        // both lists may be as long as a body
        const std::unordered_set<std::string_view> by_name(known.begin(), known.end());
        for (const std::string& name : choice->names)
            if (!by_name.contains(name))
                return wrong_field(choice->path, "one of the tools, " + listed(known), "'" + name.substr(0, 64) + "'");
    }
    if (!choice->names.empty()) {
        const std::unordered_set<std::string_view> wanted(choice->names.begin(), choice->names.end());
        edits.cut(*tools, [&](const JsonView::Walk& walk, size_t) {
            const auto name = name_of(route, walk.value());
            return !name || !wanted.contains(*name);
        });
    }
    if (route != kMessagesRoute) {
        const std::string_view word = required ? "\"required\"" : choice->mode == Mode::none ? "\"none\"" : "\"auto\"";
        if (given->text() != word) edits.set("tool_choice", std::string(word));
    }
    return required;
}

}  // namespace onebit
