#include "server/supervisor/input_items.h"

#include <optional>
#include <unordered_set>

#include "server/supervisor/request_fields.h"
#include "server/supervisor/request_members.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

Error wrong(const std::string& path, std::string expected, const std::optional<JsonView>& found) {
    return wrong_field(path, std::move(expected), found ? found->described() : "none");
}

Result<void> string_at(const JsonView& object, const char* key, const std::string& path) {
    const auto value = object.member(key);
    if (value && value->is_string()) return {};
    return wrong(path + "." + key, "a string", value);
}

// The text of reasoning; empty where there is none to read.
std::string reasoning_text(const JsonView& item, size_t& parts) {
    std::string text;
    const auto content = item.member("content");
    if (!content || content->kind() != Kind::array) return text;
    for (JsonView::Walk walk = content->walk(); walk.next(); parts++)
        if (const auto part = walk.value().member("text")) text += part->string();
    return text;
}

Result<void> parts_of(const JsonView& content, const std::string& path, JsonEdits& edits) {
    size_t i = 0;
    for (JsonView::Walk walk = content.walk(); walk.next(); i++) {
        const JsonView part = walk.value();
        if (part.kind() != Kind::object) continue;  // the engine says so
        const std::string where = element_path(path, i);
        const auto type = part.member("type"), refusal = part.member("refusal");
        if (!type) return wrong(where + ".type", "input_text, input_image, output_text or refusal", type);
        const std::string name = type->string();
        if (name == "input_text" || name == "output_text") ONEBIT_RETURN_IF_ERROR(string_at(part, "text", where));
        edits.cut_nulls(part);
        if (name == "refusal" && refusal && refusal->is_string())
            edits.replace(part, R"({"type":"output_text","text":)" + std::string(refusal->text()) + "}");
    }
    return {};
}

Result<void> message_item(const JsonView& item, const std::string& role, const std::string& path, JsonEdits& edits) {
    const auto content = item.member("content");
    if (role == "assistant" && !item.member("type")) edits.insert(item, "type", "\"message\"");
    if (content && content->kind() == Kind::array) return parts_of(*content, path + ".content", edits);
    if ((content && content->is_string()) || role == "assistant") return {};
    return wrong(path + ".content", "a string or a list of parts", content);
}

Result<void> output_item(const JsonView& item, const std::string& path, JsonEdits& edits) {
    ONEBIT_RETURN_IF_ERROR(string_at(item, "call_id", path));
    const auto output = item.member("output");
    if (output && output->kind() == Kind::array) return parts_of(*output, path + ".output", edits);
    if (output && output->is_string()) return {};
    return wrong(path + ".output", "a string or a list of parts", output);
}

}  // namespace

Result<void> rewrite_input(const JsonView& input, JsonEdits& edits) {
    if (input.kind() != Kind::array) return {};
    std::unordered_set<size_t> unread;
    size_t i = 0;
    for (JsonView::Walk walk = input.walk(); walk.next(); i++) {
        const JsonView item = walk.value();
        if (item.kind() != Kind::object) continue;  // the engine says so
        const std::string path = element_path("input", i);
        const auto type = item.member("type"), role = item.member("role");
        const std::string kind = type ? type->string() : std::string();
        if (kind == "item_reference" || (!type && !role && item.member("id")))
            return wrong_field(path, "the item itself", "a reference to one",
                               "this server keeps no answers; send the earlier items again");
        edits.cut_nulls(item);
        if (kind == "reasoning") {
            size_t parts = 0;
            const std::string text = reasoning_text(item, parts);
            if (text.empty()) {
                unread.insert(i);
                continue;
            }
            if (parts > 1) edits.replace(*item.member("content"), R"([{"text":)" + json_quoted(text) + "}]");
            const auto summary = item.member("summary");
            if (!summary) edits.insert(item, "summary", "[]");
        } else if (kind == "function_call") {
            for (const char* key : {"call_id", "name", "arguments"}) ONEBIT_RETURN_IF_ERROR(string_at(item, key, path));
        } else if (kind == "function_call_output") {
            ONEBIT_RETURN_IF_ERROR(output_item(item, path, edits));
        } else if (role && role->is_string() && (kind.empty() || kind == "message")) {
            ONEBIT_RETURN_IF_ERROR(message_item(item, role->string(), path, edits));
        } else if (kind == "message" || kind.empty()) {
            return wrong(path + ".role", "system, developer, user or assistant", role);
        } else {
            return wrong(path + ".type", "message, function_call, function_call_output or reasoning", type);
        }
    }
    if (!unread.empty() && unread.size() == i)
        return wrong_field("input", "at least one item with text", "none",
                           "reasoning without text cannot be read by this model");
    if (!unread.empty()) edits.cut(input, [&](const JsonView::Walk&, size_t at) { return unread.count(at) > 0; });
    return {};
}

}  // namespace onebit
