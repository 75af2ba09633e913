#include "server/supervisor/constraint_names.h"

#include <array>
#include <cstdio>
#include <optional>

#include "server/supervisor/request_body.h"
#include "server/supervisor/request_fields.h"

namespace onebit {
namespace {

using Kind = JsonView::Kind;

// More characters than a grammar may have parts, each written as an escape.
constexpr size_t kMostChoiceBytes = 2 << 20;

enum class Form { json, regex, choice, grammar, object, any };

struct Name {
    std::string_view name;
    Form form;
};
constexpr std::array<Name, 8> kNames = {{{"guided_json", Form::json},
                                         {"guided_regex", Form::regex},
                                         {"guided_choice", Form::choice},
                                         {"guided_grammar", Form::grammar},
                                         {"regex", Form::regex},
                                         {"ebnf", Form::grammar},
                                         {"format", Form::any},
                                         {"structured_outputs", Form::any}}};
constexpr std::array<Name, 5> kParts = {{{"json", Form::json},
                                         {"regex", Form::regex},
                                         {"choice", Form::choice},
                                         {"grammar", Form::grammar},
                                         {"json_object", Form::object}}};

struct Asked {
    std::string path;
    Form form = Form::any;
    JsonView value = JsonView({});
};

bool is_false(const JsonView& value) { return value.text() == "false"; }
bool is_empty(const JsonView& value) { return value.text() == "\"\""; }

// A literal of GBNF.
std::string literal(std::string_view text) {
    std::string result = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += static_cast<char>(c);
        } else if (c < 0x20) {
            char code[8];
            std::snprintf(code, sizeof(code), "\\x%02X", c);
            result += code;
        } else {
            result += static_cast<char>(c);
        }
    }
    return result + "\"";
}

Result<std::string> schema_text(const JsonView& value, const std::string& path) {
    if (value.kind() == Kind::object) return std::string(value.text());
    if (!value.is_string()) return wrong_field(path, "a JSON schema, an object", value.described());
    std::string text = value.string();
    Result<RequestFacts> facts = scan_request_body(text);
    if (!facts.ok() || !facts->object) return wrong_field(path, "a JSON schema, an object", "text that is none");
    return text;
}

Result<std::string> grammar_of_choices(const JsonView& value, const std::string& path) {
    if (value.kind() != Kind::array || value.count(1) == 0)
        return wrong_field(path, "a list of strings",
                           value.kind() == Kind::array ? "an empty list" : value.described());
    if (value.text().size() > kMostChoiceBytes)
        return wrong_field(path, "at most " + std::to_string(kMostChoiceBytes) + " bytes",
                           std::to_string(value.text().size()));
    std::string grammar;
    size_t i = 0;
    for (JsonView::Walk walk = value.walk(); walk.next(); i++) {
        const JsonView choice = walk.value();
        if (!choice.is_string()) return wrong_field(element_path(path, i), "a string", choice.described());
        const std::string text = choice.string();
        if (text.find('\0') != std::string::npos)
            return wrong_field(element_path(path, i), "text without the character U+0000", "one with");
        grammar += (i ? " | " : "root ::= ") + literal(text);
    }
    return grammar;
}

// What `format` of Ollama asks for.
Result<Form> form_of_format(const JsonView& value) {
    if (value.kind() == Kind::object) return Form::json;
    if (value.is("json")) return Form::object;
    return wrong_field("format", "json or a JSON schema", value.described());
}

Result<void> translate(const Asked& asked, JsonEdits& edits) {
    switch (asked.form) {
        case Form::json: {
            Result<std::string> schema = schema_text(asked.value, asked.path);
            if (!schema.ok()) return std::move(schema).error();
            edits.drop("grammar");  // an empty one, which completions take for the one to obey
            edits.set("json_schema", std::move(*schema));
            return {};
        }
        case Form::object:
            edits.drop("grammar");
            edits.set("json_schema", R"({"type":"object"})");
            return {};
        case Form::choice: {
            Result<std::string> grammar = grammar_of_choices(asked.value, asked.path);
            if (!grammar.ok()) return std::move(grammar).error();
            edits.set("grammar", json_quoted(*grammar));
            return {};
        }
        case Form::grammar:
            if (!asked.value.is_string())
                return wrong_field(asked.path, "a grammar in GBNF, a string", asked.value.described());
            edits.set("grammar", std::string(asked.value.text()));
            return {};
        case Form::regex:
        case Form::any:
            break;
    }
    return wrong_field(asked.path, "none", "a regular expression",
                       "give a grammar, or a JSON schema with a pattern: no other text is held to one here");
}

Result<void> add_asked(RequestMembers::const_reference member, Form form, std::optional<Asked>& asked) {
    const auto& [name, value] = member;
    Asked found{std::string(name), form, value};
    if (name == "format") {
        if (is_empty(value)) return {};
        Result<Form> which = form_of_format(value);
        if (!which.ok()) return std::move(which).error();
        found.form = *which;
    } else if (name == "structured_outputs") {
        if (value.kind() != Kind::object) return wrong_field(name, "an object", value.described());
        std::optional<Asked> inner;
        for (const Name& part : kParts) {
            const auto given = value.member(part.name);
            if (!given || is_false(*given)) continue;
            const std::string path = "structured_outputs." + std::string(part.name);
            if (inner) return wrong_field(path, "one form of the answer", "'" + inner->path + "' too");
            inner = Asked{path, part.form, *given};
        }
        if (value.member("structural_tag"))
            return wrong_field("structured_outputs.structural_tag", "json, choice or grammar", "it");
        if (!inner) return {};
        found = std::move(*inner);
    }
    if (asked) return wrong_field(found.path, "one form of the answer", "'" + asked->path + "' too");
    asked = std::move(found);
    return {};
}

// A field of llama.cpp's own that asks for a form; empty for none.
std::string_view own_field(const RequestMembers& members) {
    if (member_of(members, "json_schema")) return "json_schema";
    if (const JsonView* grammar = member_of(members, "grammar"); grammar && !is_empty(*grammar)) return "grammar";
    const JsonView* format = member_of(members, "response_format");
    const auto type = format ? format->member("type") : std::nullopt;
    return format && (!type || type->string() != "text") ? "response_format" : "";
}

}  // namespace

Result<std::string> rewrite_constraint(RequestRoute route, const RequestMembers& members, JsonEdits& edits) {
    std::optional<Asked> asked;
    for (const Name& known : kNames) {
        const auto found = members.find(known.name);
        if (found == members.end()) continue;
        edits.drop(known.name);
        ONEBIT_RETURN_IF_ERROR(add_asked(*found, known.form, asked));
    }
    const std::string_view own = own_field(members);
    if (route == kMessagesRoute && (asked || !own.empty()))
        return wrong_field(asked ? asked->path : own, "none on this route", "it",
                           "give a tool with that input_schema and tool_choice {\"type\": \"any\"}");
    if (!asked) return std::string();
    if (!own.empty()) return wrong_field(asked->path, "one form of the answer", "'" + std::string(own) + "' too");
    if (Result<void> done = translate(*asked, edits); !done.ok()) return std::move(done).error();
    return std::move(asked->path);
}

}  // namespace onebit
