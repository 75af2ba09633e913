#include "server/supervisor/request_check.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "server/supervisor/grammar_check.h"
#include "server/supervisor/json_view.h"
#include "server/supervisor/request_fields.h"
#include "server/supervisor/request_rewrite.h"
#include "server/supervisor/request_route.h"
#include "server/supervisor/request_values.h"
#include "server/supervisor/schema_check.h"
#include "server/supervisor/text_markers.h"

namespace onebit {
namespace {

using nlohmann::json;

std::string described(const json& value) {
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    if (value.is_string()) return "a string";
    if (value.is_boolean()) return "true or false";
    return value.is_null() ? "null" : "a number";
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

constexpr const char* kLooseRemedy =
    R"(or "strict": false beside the schema, to have what cannot be held left out; --loose-patterns of the server does so for all)";

// What a schema must be, and whether it must be held to the letter.
enum class Hold { always, unless_loose, loose };

// All schemas of a request.
struct Schemas {
    bool loose_patterns = false;  // patterns that make no grammar may be left out of account
    std::string loosened;         // the first one that was
    SchemaTotals totals;
};

// Names of properties may be of any length.
std::string shortened(const std::string& path) {
    return path.size() <= 400 ? path : path.substr(0, 200) + " ... " + path.substr(path.size() - 190);
}

Result<void> schema_at(const json& schema, const std::string& path, Hold hold, Schemas& schemas) {
    if (!schema.is_object()) return wrong_field(path, "a JSON schema, an object", described(schema));
    const SchemaTotals before = schemas.totals;
    Result<void> checked = check_schema(schema, path, hold != Hold::loose, schemas.totals);
    const bool pattern = !checked.ok() && checked.error().subject.ends_with(".pattern");
    if (pattern && schemas.loose_patterns && hold != Hold::loose) {
        if (schemas.loosened.empty()) schemas.loosened = shortened(checked.error().subject);
        schemas.totals = before;
        checked = check_schema(schema, path, false, schemas.totals);
    }
    if (checked.ok()) return checked;
    Error error = std::move(checked).error();
    error.subject = "field '" + shortened(error.subject) + "'";
    if (pattern && hold == Hold::unless_loose)
        error.remedy += (error.remedy.empty() ? "" : ", ") + std::string(kLooseRemedy);
    return error;
}

// The response_format of chat/completions. Sets has_schema when it asks for more than text.
Result<void> response_format(const json& format, bool& has_schema, Schemas& schemas) {
    if (!format.is_object()) return wrong_field("response_format", "an object with a type", described(format));
    const json* type = member(format, "type");
    if (!type || !type->is_string())
        return wrong_field("response_format.type", "text, json_object or json_schema",
                           type ? described(*type) : "none");
    const std::string& name = type->get_ref<const std::string&>();
    has_schema = name == "json_object" || name == "json_schema";
    if (name == "json_object") {
        const json* schema = member(format, "schema");
        return schema ? schema_at(*schema, "response_format.schema", Hold::always, schemas) : Result<void>{};
    }
    if (name != "json_schema") return {};
    const json* wrapper = member(format, "json_schema");
    if (!wrapper || !wrapper->is_object())
        return wrong_field("response_format.json_schema", "an object with name and schema",
                           wrapper ? described(*wrapper) : "none");
    const json* schema = member(*wrapper, "schema");
    if (!schema) return wrong_field("response_format.json_schema.schema", "a JSON schema", "none");
    return schema_at(*schema, "response_format.json_schema.schema", loose(*wrapper) ? Hold::loose : Hold::unless_loose,
                     schemas);
}

// key: of the schema in a tool; inner: the object of the tool that holds it, empty for the tool itself.
Result<void> tools(const json& body, const char* inner, const char* key, Schemas& schemas) {
    constexpr size_t kMost = 1024;
    const json* list = member(body, "tools");
    const json* choice = member(body, "tool_choice");
    if (!list || !list->is_array()) return {};  // the engine refuses what is no list
    const bool none = choice && *choice == "none";
    if (list->size() > kMost) return wrong_field("tools", "at most 1024 tools", std::to_string(list->size()));
    for (size_t i = 0; i < list->size(); i++) {
        const json& tool = (*list)[i];
        std::string path = "tools[" + std::to_string(i) + "].";
        const json* owner = *inner ? member(tool, inner) : &tool;
        if (*inner) path += std::string(inner) + ".";
        const json* schema = owner ? member(*owner, key) : nullptr;
        if (!schema || !schema->is_object()) continue;
        const Hold hold = none || loose(*owner) || loose(tool) ? Hold::loose : Hold::unless_loose;
        ONEBIT_RETURN_IF_ERROR(schema_at(*schema, path + key, hold, schemas));
    }
    return {};
}

bool is_completion(RequestRoute route) { return route == kCompletionRoute || route == kInfillRoute; }

// json_schema and grammar, llama.cpp's own fields. has_schema: another field asks for a schema already.
Result<void> own_fields(const json& body, RequestRoute route, bool has_schema, Schemas& schemas) {
    if (const json* schema = member(body, "json_schema")) {
        ONEBIT_RETURN_IF_ERROR(schema_at(*schema, "json_schema", Hold::always, schemas));
        has_schema = true;
    }
    const json* grammar = member(body, "grammar");
    if (grammar && !grammar->is_string()) return wrong_field("grammar", "a grammar, a string", described(*grammar));
    // completions take an empty grammar, even null, for the one to obey
    const bool counts =
        is_completion(route) ? body.contains("grammar") : grammar && !grammar->get_ref<const std::string&>().empty();
    if (has_schema && counts) return wrong_field("grammar", "either a schema or a grammar", "both");
    if (!grammar || grammar->get_ref<const std::string&>().empty()) return {};
    Result<void> checked = check_grammar(grammar->get_ref<const std::string&>());
    if (checked.ok()) return {};
    Error error = std::move(checked).error();
    error.subject = "field 'grammar'";
    return error;
}

const json* text_format(const json& body) {
    const json* text = member(body, "text");
    return text ? member(*text, "format") : nullptr;
}

bool is_plain(const json& format) {
    const json* type = member(format, "type");
    return type && *type == "text";
}

// The response_format that says what text.format says; empty where it asks for nothing.
Result<std::string> format_of_text(const json& body, RequestRoute route, Schemas& schemas) {
    const json* text = member(body, "text");
    // elsewhere than on /v1/responses it is a field of no API unless it has a format
    if (!text || (route != kResponsesRoute && !text->is_object())) return std::string();
    if (!text->is_object()) return wrong_field("text", "an object", described(*text));
    const json* format = member(*text, "format");
    if (!format) return std::string();
    if (!format->is_object()) return wrong_field("text.format", "an object with a type", described(*format));
    const json* type = member(*format, "type");
    if (!type || !type->is_string())
        return wrong_field("text.format.type", "text, json_object or json_schema", type ? described(*type) : "none");
    const std::string& name = type->get_ref<const std::string&>();
    if (name == "text") return std::string();
    if (const json* other = member(body, "response_format"); other && !is_plain(*other))
        return wrong_field("text.format", "one form of the answer", "'response_format' too");
    if (name == "json_object") return std::string(R"({"type":"json_object"})");
    if (name != "json_schema")
        return wrong_field("text.format.type", "text, json_object or json_schema", "'" + name.substr(0, 60) + "'");
    const json* schema = member(*format, "schema");
    if (!schema) return wrong_field("text.format.schema", "a JSON schema", "none");
    const Hold hold = loose(*format) ? Hold::loose : Hold::unless_loose;
    ONEBIT_RETURN_IF_ERROR(schema_at(*schema, "text.format.schema", hold, schemas));
    json wrapper = {{"name", format->value("name", json("response"))}, {"schema", *schema}};
    return json{{"type", "json_schema"}, {"json_schema", std::move(wrapper)}}.dump();
}

// The members that are looked at as a whole, built but for the bias; the last of two of the same name, as the engine
// takes them.
struct Members {
    json built = json::object();
    std::optional<JsonView> bias;
};
Members members_of(const JsonView& body) {
    static constexpr std::array<std::string_view, 8> kKeys = {
        "response_format", "json_schema", "grammar", "text", "output_format", "output_config", "tools", "tool_choice"};
    Members members;
    for (JsonView::Walk member = body.walk(); member.next();) {
        const std::string key = member.raw_key().size() < 100 ? member.key() : std::string();
        if (key == "logit_bias") members.bias = member.value();
        if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end())
            members.built[key] = json::parse(member.value().text(), nullptr, false);
    }
    return members;
}

// Where a grammar leaves only tokens that a bias rules out, the engine takes any, and may end itself.
Result<void> check_bans(const std::optional<JsonView>& bias, const json& body) {
    if (!bias || !bans_tokens(*bias)) return {};
    const auto asks = [](const json* owner) {
        if (!owner || owner->empty()) return false;
        if (owner->is_string()) return !owner->get_ref<const std::string&>().empty();
        return !owner->is_object() || owner->value("type", json()) != "text";
    };
    for (const json* owner : {member(body, "grammar"), member(body, "json_schema"), member(body, "response_format"),
                              member(body, "tools"), text_format(body)})
        if (asks(owner))
            return wrong_field("logit_bias", "numbers, with a grammar, a schema or tools", "false",
                               "write -100 instead, which rules a token out where there is another");
    return {};
}

// Where the route knows neither response_format nor text.format.
Result<void> no_formats(const json& body, const char* response_format) {
    const json* format = member(body, "response_format");
    if (format && !is_plain(*format))
        return wrong_field("response_format", response_format, "it", "/v1/chat/completions knows response_format");
    format = text_format(body);
    if (format && !is_plain(*format))
        return wrong_field("text.format", response_format, "it", "/v1/responses knows text.format");
    return {};
}

Result<void> check_of_messages(const json& body, Schemas& schemas) {
    const json* config = member(body, "output_config");
    const bool in_config = config && member(*config, "format");
    if (in_config || member(body, "output_format"))
        return wrong_field(in_config ? "output_config.format" : "output_format", "none on this route", "it",
                           "give a tool with that input_schema and tool_choice {\"type\": \"any\"}");
    ONEBIT_RETURN_IF_ERROR(no_formats(body, "none on this route"));
    return tools(body, "", "input_schema", schemas);
}

// changed: the body to send instead, if there is one already.
Result<void> check_forms(RequestRoute route, std::string_view text, std::optional<std::string>& changed,
                         Schemas& schemas) {
    const Members members = members_of(JsonView(text));
    const json& body = members.built;
    ONEBIT_RETURN_IF_ERROR(check_bans(members.bias, body));
    bool has_schema = false;
    if (is_completion(route)) {
        ONEBIT_RETURN_IF_ERROR(no_formats(body, "json_schema or grammar on this route"));
        return own_fields(body, route, has_schema, schemas);
    }
    if (route == kMessagesRoute) return check_of_messages(body, schemas);
    if (const json* format = member(body, "response_format"))
        ONEBIT_RETURN_IF_ERROR(response_format(*format, has_schema, schemas));
    Result<std::string> format = format_of_text(body, route, schemas);
    if (!format.ok()) return std::move(format).error();
    has_schema = has_schema || !format->empty();
    ONEBIT_RETURN_IF_ERROR(own_fields(body, route, has_schema, schemas));
    ONEBIT_RETURN_IF_ERROR(route == kResponsesRoute ? tools(body, "", "parameters", schemas)
                                                    : tools(body, "function", "parameters", schemas));
    if (format->empty()) return {};
    std::string sent(text);
    // the last of two keys counts
    sent.insert(sent.rfind('}'), ",\"response_format\":" + *format);
    changed = std::move(sent);
    return {};
}

// Names the field that the client has sent, which became json_schema or grammar.
Error as_sent(Error error, const std::string& form) {
    if (form.empty()) return error;
    for (const std::string_view own : {"field 'json_schema", "field 'grammar"})
        if (error.subject.starts_with(own)) error.subject.replace(0, own.size(), "field '" + form);
    return error;
}

// Requests whose answer is text of the model's.
bool generates(std::string_view path) { return !path.ends_with("_tokens") && !path.ends_with("/apply-template"); }

Result<CheckedRequest> check(std::string_view path, std::string_view text, bool loose_patterns) {
    const RequestRoute route = request_route(path);
    CheckedRequest result;
    RewrittenRequest rewritten;
    const bool object = JsonView(text).kind() == JsonView::Kind::object;
    if (object && route != kOtherRoute) {
        Result<RewrittenRequest> done = rewrite_request(route, JsonView(text));
        if (!done.ok()) return std::move(done).error();
        rewritten = std::move(*done);
        result.must_call = rewritten.must_call && generates(path);
        result.body = std::move(rewritten.body);
        if (result.body) text = *result.body;
    }
    ONEBIT_RETURN_IF_ERROR(check_fields(route, JsonView(text)));
    if (route != kOtherRoute && route != kLoraRoute) ONEBIT_RETURN_IF_ERROR(check_markers(text));
    if (!object || !(route & (kSamplingRoutes | kMessagesRoute))) return result;
    Schemas schemas;
    schemas.loose_patterns = loose_patterns;
    if (Result<void> forms = check_forms(route, text, result.body, schemas); !forms.ok())
        return as_sent(std::move(forms).error(), rewritten.form);
    result.loosened = std::move(schemas.loosened);
    return result;
}

}  // namespace

Result<CheckedRequest> check_request(std::string_view path, std::string_view body, bool loose_patterns) try {
    return check(path, body, loose_patterns);
} catch (const std::exception& exception) {
    return Error{ErrorCode::internal, "request body", "", exception.what(), ""};
}

}  // namespace onebit
