// Breaks when a schema that the engine would not obey goes through, or a good request is refused.
#include "server/supervisor/request_check.h"

#include <gtest/gtest.h>

#include <functional>

#include <nlohmann/json.hpp>

#include "server/supervisor/schema_check.h"

namespace onebit {
namespace {

using nlohmann::json;

std::string refusal(const std::string& path, const json& body) {
    auto checked = check_request(path, body.dump());
    return checked.ok() ? "" : checked.error().message();
}

void expect_refusal(const std::string& path, const json& body, const std::string& part) {
    auto checked = check_request(path, body.dump());
    ASSERT_FALSE(checked.ok()) << path << " " << body;
    EXPECT_EQ(checked.error().code, ErrorCode::usage);
    EXPECT_NE(checked.error().message().find(part), std::string::npos) << checked.error().message();
}

Result<void> schema_checked(const json& schema) {
    SchemaTotals totals;
    return check_schema(schema, "s", true, totals);
}

json string_with(const std::string& pattern) { return {{"type", "string"}, {"pattern", pattern}}; }
json object_with(const json& property) { return {{"type", "object"}, {"properties", {{"a", property}}}}; }
json json_schema(const json& schema) {
    return {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}};
}
json chat_tool(const json& parameters) {
    return {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}};
}

const json kBad = object_with(string_with("^a\\!$"));
const json kGood = object_with(string_with("^[a-z]{1,4}$"));
constexpr const char* kChat = "/v1/chat/completions";

// API06
TEST(RequestCheck, API06_every_place_of_a_schema_is_named) {
    struct Case {
        const char* path;
        std::function<json(const json& schema)> body;
        const char* field;
    };
    const Case cases[] = {
        {kChat,
         [](const json& s) {
             return json{{"response_format", json_schema(s)}};
         },
         "response_format.json_schema.schema"},
        {"/chat/completions",
         [](const json& s) {
             return json{{"response_format", {{"type", "json_object"}, {"schema", s}}}};
         },
         "response_format.schema"},
        {kChat,
         [](const json& s) {
             return json{{"json_schema", s}};
         },
         "json_schema"},
        {"/completion",
         [](const json& s) {
             return json{{"json_schema", s}};
         },
         "json_schema"},
        {"/v1/completions",
         [](const json& s) {
             return json{{"json_schema", s}};
         },
         "json_schema"},
        {"/infill",
         [](const json& s) {
             return json{{"json_schema", s}};
         },
         "json_schema"},
        {kChat,
         [](const json& s) {
             return json{{"tools", {chat_tool(kGood), chat_tool(s)}}};
         },
         "tools[1].function.parameters"},
        {"/v1/responses",
         [](const json& s) {
             return json{{"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"schema", s}}}}}};
         },
         "text.format.schema"},
        {"/responses",
         [](const json& s) {
             return json{{"tools", {{{"type", "function"}, {"name", "f"}, {"parameters", s}}}}};
         },
         "tools[0].parameters"},
        {"/v1/messages",
         [](const json& s) {
             return json{{"tools", {{{"name", "f"}, {"input_schema", s}}}}};
         },
         "tools[0].input_schema"},
    };
    for (const Case& one : cases) {
        EXPECT_EQ(refusal(one.path, one.body(kGood)), "") << one.field;
        expect_refusal(one.path, one.body(kBad), "field '" + std::string(one.field) + ".properties.a.pattern'");
        expect_refusal(one.path, one.body(kBad), "\\!");
    }
}

// API06
TEST(RequestCheck, API06_all_parts_that_the_engine_reads_are_read) {
    const json bad = string_with("x");
    const json schemas[] = {
        bad,
        {{"pattern", "x"}},
        {{"type", {"null", "string"}}, {"pattern", "x"}},
        {{"anyOf", {{{"type", "null"}}, bad}}},
        {{"oneOf", {bad}}},
        {{"allOf", {bad}}},
        {{"type", "array"}, {"items", bad}},
        {{"type", "array"}, {"items", {kGood, bad}}},
        {{"prefixItems", {bad}}},
        {{"type", "object"}, {"additionalProperties", bad}},
        {{"properties", {{"a", {{"properties", {{"b", bad}}}}}}}},
        {{"$ref", "#/$defs/x"}, {"$defs", {{"x", bad}}}},
        {{"$ref", "#/list/1"}, {"list", {7, bad}}},
        {{"properties", {{"a", {{"$ref", "#/definitions/x"}}}}}, {"definitions", {{"x", object_with(bad)}}}},
    };
    for (const json& schema : schemas) {
        Result<void> checked = schema_checked(schema);
        ASSERT_FALSE(checked.ok()) << schema;
        EXPECT_TRUE(checked.error().subject.ends_with("pattern")) << checked.error().subject;
    }
    const json fine[] = {
        json::object(),
        {{"type", "integer"}, {"pattern", "x"}},
        {{"enum", {"a"}}, {"pattern", "x"}},
        {{"const", "a"}, {"pattern", "x"}},
        {{"type", "string"}, {"description", "a pattern"}},
        {{"type", "object"}, {"properties", {{"pattern", {{"type", "string"}}}}}},
        {{"$defs", {{"unused", bad}}}, {"type", "string"}},
        {{"$ref", "#/nothing/there"}},
        {{"$ref", "#/$defs/x"}, {"$defs", {{"x", {{"anyOf", {{{"$ref", "#/$defs/x"}}}}}}}}},
        {{"pattern", 7}},
        {{"type", 7}, {"properties", 7}},
        {{"anyOf", 7}},
        7,
    };
    for (const json& schema : fine) EXPECT_TRUE(schema_checked(schema).ok()) << schema;
    EXPECT_EQ(schema_checked(schemas[11]).error().subject, "s.$defs.x.pattern");
    EXPECT_EQ(schema_checked(schemas[12]).error().subject, "s.list[1].pattern");
    EXPECT_EQ(schema_checked(schemas[7]).error().subject, "s.items[1].pattern");
}

TEST(RequestCheck, schemas_that_lead_to_each_other_for_ever_are_refused) {
    json chain = {{"$ref", "#/0"}};
    for (int i = 0; i < 100000; i++) chain[std::to_string(i)] = {{"$ref", "#/" + std::to_string(i + 1)}};
    EXPECT_NE(schema_checked(chain).error().message().find("at most 256"), std::string::npos);
    json shorter = {{"$ref", "#/0"}, {"255", kGood}};
    for (int i = 0; i < 250; i++) shorter[std::to_string(i)] = {{"$ref", "#/" + std::to_string(i + 1)}};
    EXPECT_TRUE(schema_checked(shorter).ok());
    // names of any length give a message of a bounded one
    json deep = string_with("x");
    for (int i = 0; i < 50; i++) deep = {{"properties", {{std::string(1000, 'n'), deep}}}};
    EXPECT_LT(refusal(kChat, {{"json_schema", deep}}).size(), 1200u);
}

// API06: OpenAI's own word for a schema that need not be obeyed
TEST(RequestCheck, API06_strict_false_and_tool_choice_none_let_a_schema_through) {
    json format = json_schema(kBad);
    EXPECT_NE(refusal(kChat, {{"response_format", format}}).find("\"strict\": false"), std::string::npos);
    format["json_schema"]["strict"] = true;
    EXPECT_NE(refusal(kChat, {{"response_format", format}}), "");
    format["json_schema"]["strict"] = false;
    EXPECT_EQ(refusal(kChat, {{"response_format", format}}), "");
    json tool = chat_tool(kBad);
    EXPECT_EQ(refusal(kChat, {{"tools", {tool}}, {"tool_choice", "none"}}), "");
    EXPECT_NE(refusal(kChat, {{"tools", {tool}}, {"tool_choice", "auto"}}), "");
    tool["function"]["strict"] = false;
    EXPECT_EQ(refusal(kChat, {{"tools", {tool}}}), "");
    EXPECT_EQ(refusal("/v1/responses",
                      {{"tools", {{{"type", "function"}, {"name", "f"}, {"parameters", kBad}, {"strict", false}}}}}),
              "");
    EXPECT_EQ(refusal("/v1/messages", {{"tools", {{{"name", "f"}, {"input_schema", kBad}, {"strict", false}}}}}), "");
}

// for clients that cannot be changed
TEST(RequestCheck, API06_loose_patterns_let_every_such_pattern_through_and_name_the_first) {
    const json two = {{"type", "object"}, {"properties", {{"a", string_with("^a\\!$")}, {"b", string_with("x")}}}};
    const std::pair<std::string, json> bodies[] = {
        {kChat, {{"tools", {chat_tool(kGood), chat_tool(two)}}}},
        {kChat, {{"response_format", json_schema(two)}}},
        {kChat, {{"json_schema", two}}},
        {"/completion", {{"guided_json", two}}},
        {"/v1/responses", {{"text", {{"format", {{"type", "json_schema"}, {"schema", two}}}}}}},
        {"/v1/messages", {{"tools", {{{"name", "f"}, {"input_schema", two}}}}}},
    };
    for (const auto& [path, body] : bodies) {
        EXPECT_NE(refusal(path, body), "") << body;
        auto checked = check_request(path, body.dump(), true);
        ASSERT_TRUE(checked.ok()) << body << checked.error().message();
        EXPECT_TRUE(checked->loosened.ends_with(".properties.a.pattern")) << checked->loosened;
    }
    EXPECT_EQ(check_request(kChat, json{{"json_schema", kGood}}.dump(), true)->loosened, "");
    // what has other faults stays refused
    EXPECT_FALSE(check_request(kChat, json{{"json_schema", string_with(std::string(20'000, 'x'))}}.dump(), true).ok());
    json other = two;
    other["properties"]["c"] = {{"type", "string"}, {"minLength", 5}, {"maxLength", 1}};
    EXPECT_FALSE(check_request(kChat, json{{"json_schema", other}}.dump(), true).ok());
}

// API06: the engine takes a wrong type for a field that is not there
TEST(RequestCheck, API06_constraints_of_a_wrong_form_are_refused) {
    const json forms[] = {
        {{"response_format", "json_object"}},
        {{"response_format", {{"schema", kGood}}}},
        {{"response_format", {{"type", 7}}}},
        {{"response_format", {{"type", "json_schema"}}}},
        {{"response_format", {{"type", "json_schema"}, {"schema", kGood}}}},
        {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}}}}}},
        {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", "x"}}}}}},
        {{"response_format", {{"type", "json_object"}, {"schema", 7}}}},
        {{"json_schema", "x"}},
        {{"json_schema", true}},
        {{"grammar", 7}},
        {{"grammar", "root ::= \"a\""}, {"json_schema", kGood}},
        {{"grammar", "root ::= \"a\""}, {"response_format", json_schema(kGood)}},
    };
    for (const json& form : forms) EXPECT_NE(refusal(kChat, form), "") << form;
    expect_refusal(kChat, forms[0], "field 'response_format': expected an object with a type, found a string");
    expect_refusal("/completion", {{"response_format", json_schema(kGood)}}, "json_schema or grammar");
    expect_refusal("/completion", {{"grammar", ""}, {"json_schema", kGood}}, "both");
    EXPECT_EQ(refusal("/completion", {{"grammar", nullptr}, {"json_schema", kGood}}), "");
    expect_refusal("/v1/messages", {{"output_format", json_schema(kGood)}}, "output_format");
    expect_refusal("/v1/messages", {{"output_config", {{"format", json_schema(kGood)}}}}, "output_config.format");
    for (const json& text : {json(7), json{{"format", 7}}, json{{"format", {{"type", "x"}}}},
                             json{{"format", {{"schema", kGood}}}}, json{{"format", {{"type", "json_schema"}}}}})
        expect_refusal("/v1/responses", {{"text", text}}, "field 'text");
}

TEST(RequestCheck, what_asks_for_nothing_goes_through) {
    const json chats[] = {
        json::object(),
        {{"response_format", nullptr}},
        {{"response_format", {{"type", "text"}}}},
        {{"response_format", {{"type", "json_object"}}}},
        {{"response_format", {{"type", "none-such"}}}},
        {{"grammar", ""}, {"json_schema", kGood}},
        {{"json_schema", nullptr}, {"grammar", "root ::= \"a\""}},
        {{"tools", "x"}},
        {{"tools", {7, {{"type", "x"}}, {{"type", "function"}, {"function", 7}}, chat_tool(nullptr), chat_tool(7)}}},
        {{"text", 7}}};
    for (const json& body : chats) EXPECT_EQ(refusal(kChat, body), "") << body;
    EXPECT_EQ(refusal("/v1/messages", {{"output_config", {{"effort", "low"}}}}), "");
    EXPECT_EQ(refusal("/completion", {{"response_format", {{"type", "text"}}}}), "");
    EXPECT_EQ(refusal("/tokenize", {{"content", "x"}, {"json_schema", kBad}}), "");
}

// API06: llama.cpp drops text.format, so it is said in the field that it obeys
TEST(RequestCheck, API06_text_format_of_responses_becomes_response_format) {
    json body = {{"input", "x"},
                 {"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"schema", kGood}, {"strict", true}}}}}};
    auto checked = check_request("/v1/responses", body.dump() + "\n");
    ASSERT_TRUE(checked.ok());
    ASSERT_TRUE(checked->body);
    json sent = json::parse(*checked->body);
    EXPECT_EQ(sent["response_format"], json_schema(kGood));
    sent.erase("response_format");
    EXPECT_EQ(sent, body);
    auto any = check_request("/v1/responses", R"({"text":{"format":{"type":"json_object"}},"input":"x"})");
    EXPECT_EQ(json::parse(*any->body)["response_format"], json::parse(R"({"type":"json_object"})"));
    for (const char* plain :
         {R"({"text":{"verbosity":"low"}})", R"({"text":{"format":{"type":"text"}}})", R"({"text":null})"}) {
        auto same = check_request("/v1/responses", plain);
        ASSERT_TRUE(same.ok()) << plain;
        EXPECT_FALSE(same->body && json::parse(*same->body).contains("response_format")) << plain;
    }
}

}  // namespace
}  // namespace onebit
