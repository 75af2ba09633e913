#include "server/supervisor/message_form.h"

#include <algorithm>
#include <array>
#include <optional>

#include "server/supervisor/request_fields.h"
#include "server/supervisor/request_members.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

Error missing(const std::string& path, std::string expected, std::string remedy = {}) {
    return wrong_field(path, std::move(expected), "none", std::move(remedy));
}

bool has_null(const JsonView& object) {
    for (JsonView::Walk walk = object.walk(); walk.next();)
        if (walk.value().is_null()) return true;
    return false;
}

void without_nulls(const JsonView& object, JsonEdits& edits) {
    if (has_null(object)) edits.cut_nulls(object);
}

// The last of a name counts, also where it is null.
std::optional<JsonView> unless_null(const JsonView& value) {
    return value.is_null() ? std::nullopt : std::optional(value);
}

// A part of a chat message's content.
Result<void> part_of_content(const JsonView& part, const std::string& path, JsonEdits& edits) {
    std::optional<JsonView> type, text, refusal;
    bool null = false;
    for (JsonView::Walk walk = part.walk(); walk.next();) {
        const JsonView value = walk.value();
        null = null || value.is_null();
        if (walk.named("type")) type = unless_null(value);
        if (walk.named("text")) text = unless_null(value);
        if (walk.named("refusal")) refusal = unless_null(value);
    }
    if (!type) return missing(path + ".type", "text or image_url");
    if (type->is("refusal") && refusal && refusal->is_string()) {
        edits.replace(part, R"({"type":"text","text":)" + std::string(refusal->text()) + "}");
        return {};
    }
    if (type->is("text") && (!text || !text->is_string()))
        return text ? wrong_field(path + ".text", "a string", text->described()) : missing(path + ".text", "a string");
    if (null) edits.cut_nulls(part);
    return {};
}

Result<void> tool_call(const JsonView& call, const std::string& path, JsonEdits& edits) {
    without_nulls(call, edits);
    if (!call.member("type")) return missing(path + ".type", "function");
    const auto function = call.member("function");
    if (!function) return missing(path + ".function", "an object with name and arguments");
    if (function->kind() != Kind::object) return {};
    without_nulls(*function, edits);
    if (!function->member("name")) return missing(path + ".function.name", "the name of a tool");
    if (!function->member("arguments")) return missing(path + ".function.arguments", "a string that holds JSON");
    return {};
}

template <typename Each>
Result<void> each_object(const JsonView& list, const std::string& path, const Each& each) {
    if (list.kind() != Kind::array) return {};
    size_t i = 0;
    for (JsonView::Walk walk = list.walk(); walk.next(); i++)
        if (walk.value().kind() == Kind::object) ONEBIT_RETURN_IF_ERROR(each(walk.value(), element_path(path, i)));
    return {};
}

Result<void> chat_message(const JsonView& message, const std::string& path, JsonEdits& edits) {
    std::optional<JsonView> role, content, calls, refusal, function_call;
    bool null = false, null_calls = false;
    for (JsonView::Walk walk = message.walk(); walk.next();) {
        const JsonView value = walk.value();
        if (walk.named("content")) {
            content = value;
            continue;
        }
        null = null || value.is_null();
        if (walk.named("role")) role = unless_null(value);
        if (walk.named("tool_calls")) {
            calls = unless_null(value);
            null_calls = !calls;
        }
        if (walk.named("refusal")) refusal = unless_null(value);
        if (walk.named("function_call")) function_call = unless_null(value);
    }
    if (!role) return missing(path + ".role", "system, developer, user, assistant or tool");
    if (function_call)
        return wrong_field(path + ".function_call", "tool_calls", function_call->described(),
                           "a call is tool_calls [{id, type, function}], its result a message of the role tool");
    if (null) edits.cut_nulls(message, {"content"});
    if (content)
        ONEBIT_RETURN_IF_ERROR(each_object(
            *content, path + ".content",
            [&](const JsonView& part, const std::string& where) { return part_of_content(part, where, edits); }));
    if (calls)
        ONEBIT_RETURN_IF_ERROR(
            each_object(*calls, path + ".tool_calls",
                        [&](const JsonView& call, const std::string& where) { return tool_call(call, where, edits); }));
    if (!refusal || !refusal->is_string() || calls || !role->is("assistant")) {
        // the engine takes either for a message without text, but not neither
        if (null_calls && !content) edits.insert(message, "content", "null");
        return {};
    }
    if (!content) edits.insert(message, "content", refusal->text());
    if (content && content->is_null()) edits.replace(*content, std::string(refusal->text()));
    return {};
}

std::string named_type(const JsonView& object) {
    const auto type = object.member("type");
    return type ? type->string() : std::string();
}

Error other_type(const JsonView& object, const std::string& path, std::string expected, std::string remedy = {}) {
    const auto type = object.member("type");
    return wrong_field(path + ".type", std::move(expected), type ? type->described() : "none", std::move(remedy));
}

Result<void> image_source(const JsonView& block, const std::string& path) {
    const auto source = block.member("source");
    if (!source || source->kind() != Kind::object) return missing(path + ".source", "an object with type");
    const std::string type = named_type(*source);
    if (type == "base64" || type == "url") return {};
    return other_type(*source, path + ".source", "base64 or url");
}

Result<void> text_block(const JsonView& block, const std::string& path) {
    const auto text = block.member("text");
    if (text && text->is_string()) return {};
    return text ? wrong_field(path + ".text", "a string", text->described()) : missing(path + ".text", "a string");
}

Result<void> block_of_result(const JsonView& block, const std::string& path) {
    const std::string type = named_type(block);
    if (type == "text") return text_block(block, path);
    if (type == "image") return image_source(block, path);
    return other_type(block, path, "text or image", "send what it says as text");
}

Result<void> block_of_message(const JsonView& block, const std::string& path) {
    const std::string type = named_type(block);
    if (type == "text") return text_block(block, path);
    if (type == "image") return image_source(block, path);
    if (type == "thinking" || type == "redacted_thinking" || type == "tool_use") return {};
    if (type != "tool_result")
        return other_type(block, path, "text, image, thinking, tool_use or tool_result", "send what it says as text");
    const auto content = block.member("content");
    return content ? each_object(*content, path + ".content", block_of_result) : Result<void>{};
}

Result<void> one_tool(RequestRoute route, const JsonView& tool, const std::string& path, JsonEdits& edits) {
    without_nulls(tool, edits);
    const auto type = tool.member("type");
    if (route == kMessagesRoute) {
        if (type && type->string() != "custom")
            return other_type(tool, path, "custom", "this server runs no tools; give one with an input_schema");
        return tool.member("name") ? Result<void>{} : missing(path + ".name", "a string");
    }
    if (!type) return missing(path + ".type", "function");
    if (!type->is("function")) return {};
    if (route == kResponsesRoute) return tool.member("name") ? Result<void>{} : missing(path + ".name", "a string");
    const auto function = tool.member("function");
    if (!function) return missing(path + ".function", "an object with name, description and parameters");
    if (function->kind() != Kind::object) return {};
    without_nulls(*function, edits);
    return function->member("name") ? Result<void>{} : missing(path + ".function.name", "a string");
}

}  // namespace

Result<void> rewrite_messages(const JsonView& messages, JsonEdits& edits) {
    return each_object(messages, "messages", [&](const JsonView& message, const std::string& path) {
        return chat_message(message, path, edits);
    });
}

Result<void> rewrite_blocks(const JsonView& messages, JsonEdits& edits) {
    return each_object(messages, "messages", [&](const JsonView& message, const std::string& path) -> Result<void> {
        if (!message.member("role")) return missing(path + ".role", "user or assistant");
        if (has_null(message)) edits.cut_nulls(message, {"content"});
        const auto content = message.member("content");
        return content ? each_object(*content, path + ".content", block_of_message) : Result<void>{};
    });
}

Result<void> rewrite_tools(RequestRoute route, const JsonView& tools, JsonEdits& edits) {
    return each_object(tools, "tools", [&](const JsonView& tool, const std::string& path) {
        return one_tool(route, tool, path, edits);
    });
}

}  // namespace onebit
