#include "server/supervisor/request_check.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "server/supervisor/schema_check.h"

namespace onebit {
namespace {

using nlohmann::json;

enum class Route { chat, completion, responses, messages, other };

Route route_of(std::string_view path) {
    if (path.starts_with("/v1/")) path.remove_prefix(3);
    for (std::string_view tail : {"/input_tokens", "/count_tokens"})
        if (path.ends_with(tail)) path.remove_suffix(tail.size());
    if (path == "/chat/completions" || path == "/apply-template") return Route::chat;
    if (path == "/completion" || path == "/completions" || path == "/infill") return Route::completion;
    if (path == "/responses") return Route::responses;
    if (path == "/messages") return Route::messages;
    return Route::other;
}

std::string described(const json& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    if (value.is_string()) return "a string";
    if (value.is_boolean()) return "true or false";
    return value.is_null() ? "null" : "a number";
}

Error wrong(std::string path, std::string expected, std::string found, std::string remedy = {}) {
    return {ErrorCode::usage, "field '" + std::move(path) + "'", std::move(expected), std::move(found),
            std::move(remedy)};
}

// The member, or null: an engine takes null for a field that is not there.
const json* member(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool loose(const json& owner) {
    const json* strict = member(owner, "strict");
    return strict && strict->is_boolean() && !strict->get<bool>();
}

constexpr const char* kLooseRemedy = R"(or "strict": false beside the schema, to have what cannot be held left out)";

// may_be_loose: the place has a "strict" of its own.
Result<void> schema_at(const json& schema, const std::string& path, bool may_be_loose) {
    if (!schema.is_object()) return wrong(path, "a JSON schema, an object", described(schema));
    Result<void> checked = check_schema(schema, path);
    if (checked.ok()) return checked;
    Error error = std::move(checked).error();
    // names of properties may be of any length
    if (error.subject.size() > 400)
        error.subject = error.subject.substr(0, 200) + " ... " + error.subject.substr(error.subject.size() - 190);
    error.subject = "field '" + error.subject + "'";
    if (may_be_loose) error.remedy += (error.remedy.empty() ? "" : ", ") + std::string(kLooseRemedy);
    return error;
}

// The response_format of chat/completions. Sets has_schema when it asks for more than text.
Result<void> response_format(const json& format, bool& has_schema) {
    if (!format.is_object()) return wrong("response_format", "an object with a type", described(format));
    const json* type = member(format, "type");
    if (!type || !type->is_string())
        return wrong("response_format.type", "text, json_object or json_schema", type ? described(*type) : "none");
    const std::string& name = type->get_ref<const std::string&>();
    has_schema = name == "json_object" || name == "json_schema";
    if (name == "json_object") {
        const json* schema = member(format, "schema");
        return schema ? schema_at(*schema, "response_format.schema", false) : Result<void>{};
    }
    if (name != "json_schema") return {};
    const json* wrapper = member(format, "json_schema");
    if (!wrapper || !wrapper->is_object())
        return wrong("response_format.json_schema", "an object with name and schema",
                     wrapper ? described(*wrapper) : "none");
    const json* schema = member(*wrapper, "schema");
    if (!schema) return wrong("response_format.json_schema.schema", "a JSON schema", "none");
    return loose(*wrapper) && schema->is_object() ? Result<void>{}
                                                  : schema_at(*schema, "response_format.json_schema.schema", true);
}

// key: of the schema in a tool; inner: the object of the tool that holds it, empty for the tool itself.
Result<void> tools(const json& body, const char* inner, const char* key) {
    const json* list = member(body, "tools");
    const json* choice = member(body, "tool_choice");
    if (!list || !list->is_array()) return {};  // the engine refuses what is no list
    if (choice && *choice == "none") return {};
    for (size_t i = 0; i < list->size(); i++) {
        const json& tool = (*list)[i];
        std::string path = "tools[" + std::to_string(i) + "].";
        const json* owner = *inner ? member(tool, inner) : &tool;
        if (*inner) path += std::string(inner) + ".";
        const json* schema = owner ? member(*owner, key) : nullptr;
        if (!schema || !schema->is_object() || loose(*owner) || loose(tool)) continue;
        ONEBIT_RETURN_IF_ERROR(schema_at(*schema, path + key, true));
    }
    return {};
}

// json_schema and grammar, llama.cpp's own fields. has_schema: another field asks for a schema already.
Result<void> own_fields(const json& body, Route route, bool has_schema) {
    if (const json* schema = member(body, "json_schema")) {
        ONEBIT_RETURN_IF_ERROR(schema_at(*schema, "json_schema", false));
        has_schema = true;
    }
    const json* grammar = member(body, "grammar");
    if (grammar && !grammar->is_string()) return wrong("grammar", "a grammar, a string", described(*grammar));
    // completions take an empty grammar, even null, for the one to obey
    const bool counts = route == Route::completion ? body.contains("grammar")
                                                   : grammar && !grammar->get_ref<const std::string&>().empty();
    if (has_schema && counts) return wrong("grammar", "either a schema or a grammar", "both");
    return {};
}

// The response_format that says what text.format says; empty where it asks for nothing.
Result<std::string> format_of_responses(const json& body) {
    const json* text = member(body, "text");
    if (!text) return std::string();
    if (!text->is_object()) return wrong("text", "an object", described(*text));
    const json* format = member(*text, "format");
    if (!format) return std::string();
    if (!format->is_object()) return wrong("text.format", "an object with a type", described(*format));
    const json* type = member(*format, "type");
    if (!type || !type->is_string())
        return wrong("text.format.type", "text, json_object or json_schema", type ? described(*type) : "none");
    const std::string& name = type->get_ref<const std::string&>();
    if (name == "text") return std::string();
    if (name == "json_object") return std::string(R"({"type":"json_object"})");
    if (name != "json_schema")
        return wrong("text.format.type", "text, json_object or json_schema", "'" + name.substr(0, 60) + "'");
    const json* schema = member(*format, "schema");
    if (!schema) return wrong("text.format.schema", "a JSON schema", "none");
    if (!loose(*format) || !schema->is_object()) ONEBIT_RETURN_IF_ERROR(schema_at(*schema, "text.format.schema", true));
    json wrapper = {{"name", format->value("name", json("response"))}, {"schema", *schema}};
    return json{{"type", "json_schema"}, {"json_schema", std::move(wrapper)}}.dump();
}

Result<std::optional<std::string>> check(Route route, std::string_view text) {
    const json body = json::parse(text, nullptr, false);
    if (!body.is_object()) return std::optional<std::string>();  // scan_request_body() has refused it
    bool has_schema = false;
    if (route == Route::completion) {
        if (const json* format = member(body, "response_format")) {
            const json* type = member(*format, "type");
            if (!type || *type != "text")
                return wrong("response_format", "json_schema or grammar on this route", "it",
                             "/v1/chat/completions knows response_format");
        }
        ONEBIT_RETURN_IF_ERROR(own_fields(body, route, has_schema));
        return std::optional<std::string>();
    }
    if (route == Route::messages) {
        const json* config = member(body, "output_config");
        const bool in_config = config && member(*config, "format");
        if (in_config || member(body, "output_format"))
            return wrong(in_config ? "output_config.format" : "output_format", "none on this route", "it",
                         "give a tool with that input_schema and tool_choice {\"type\": \"any\"}");
        ONEBIT_RETURN_IF_ERROR(tools(body, "", "input_schema"));
        return std::optional<std::string>();
    }
    std::optional<std::string> changed;
    if (const json* format = member(body, "response_format"))
        ONEBIT_RETURN_IF_ERROR(response_format(*format, has_schema));
    if (route == Route::responses) {
        Result<std::string> format = format_of_responses(body);
        if (!format.ok()) return std::move(format).error();
        if (!format->empty()) {
            has_schema = true;
            // the last of two keys counts
            changed = std::string(text);
            changed->insert(changed->rfind('}'), ",\"response_format\":" + *format);
        }
    }
    ONEBIT_RETURN_IF_ERROR(own_fields(body, route, has_schema));
    ONEBIT_RETURN_IF_ERROR(route == Route::responses ? tools(body, "", "parameters")
                                                     : tools(body, "function", "parameters"));
    return changed;
}

}  // namespace

bool checked_top_level_key(std::string_view key) {
    static constexpr std::array<std::string_view, 6> kKeys = {"response_format", "json_schema",  "grammar", "text",
                                                              "output_format",   "output_config"};
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

bool checked_key(std::string_view key) { return key == "pattern" || key == "$ref"; }

Result<std::optional<std::string>> check_request(std::string_view path, std::string_view body) try {
    const Route route = route_of(path);
    if (route == Route::other) return std::optional<std::string>();
    return check(route, body);
} catch (const std::exception& exception) {
    return Error{ErrorCode::internal, "request body", "", exception.what(), ""};
}

}  // namespace onebit
