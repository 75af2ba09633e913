// Breaks when a schema that the engine makes no grammar of in reasonable time goes through, or one of clients is
// refused.
#include "server/supervisor/schema_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/supervisor/request_check.h"

namespace onebit {
namespace {

using nlohmann::json;

std::string refusal(const json& schema, bool patterns = true) {
    SchemaTotals totals;
    Result<void> checked = check_schema(schema, "s", patterns, totals);
    return checked.ok() ? "" : checked.error().message();
}

json object_of(size_t n, const json& property, bool required = false) {
    json schema = {{"type", "object"}, {"properties", json::object()}};
    for (size_t i = 0; i < n; i++) {
        schema["properties"]["p" + std::to_string(i)] = property;
        if (required) schema["required"].push_back("p" + std::to_string(i));
    }
    return schema;
}

const json kInteger = {{"type", "integer"}};

TEST(SchemaCheck, optional_properties_are_bounded) {
    EXPECT_EQ(refusal(object_of(500, kInteger)), "");
    EXPECT_NE(refusal(object_of(501, kInteger)).find("at most 500 properties that are not required, found 501"),
              std::string::npos);
    EXPECT_NE(refusal(object_of(3000, kInteger)), "");
    EXPECT_EQ(refusal(object_of(4000, kInteger, true)), "");
    EXPECT_NE(
        refusal({{"type", "object"}, {"allOf", {{{"anyOf", {object_of(300, kInteger), object_of(300, kInteger)}}}}}}),
        "");
    // also where the schema need not be held
    EXPECT_NE(refusal(object_of(501, kInteger), false), "");
}

TEST(SchemaCheck, alternatives_are_bounded) {
    json values = json::array(), any = json::array();
    for (int i = 0; i < 4000; i++) {
        values.push_back("v" + std::to_string(i));
        any.push_back({{"const", i}});
    }
    EXPECT_EQ(refusal({{"enum", values}}), "");
    EXPECT_EQ(refusal({{"anyOf", any}}), "");
    values.push_back("one more");
    any.push_back(kInteger);
    EXPECT_NE(refusal({{"enum", values}}).find("at most 4000 values"), std::string::npos);
    EXPECT_NE(refusal({{"anyOf", any}}).find("at most 4000 alternatives"), std::string::npos);
}

// the engine tries each way through alternatives that begin with others: these few lines are 2^40 of them
TEST(SchemaCheck, ways_through_references_are_bounded) {
    json schema = {{"$ref", "#/$defs/a0"}, {"$defs", json::object()}};
    for (int i = 0; i < 40; i++) {
        const json next = {{"$ref", "#/$defs/a" + std::to_string(i + 1)}};
        schema["$defs"]["a" + std::to_string(i)] = {{"anyOf", {next, next}}};
    }
    schema["$defs"]["a40"] = kInteger;
    EXPECT_NE(refusal(schema).find("100000 ways"), std::string::npos) << refusal(schema);
    json types = kInteger;
    for (int i = 0; i < 30; i++) types = {{"type", {"array", "array"}}, {"items", types}};
    EXPECT_NE(refusal(types).find("20000 schemas"), std::string::npos) << refusal(types);
    // a tree of itself is fine
    EXPECT_EQ(
        refusal({{"$ref", "#/$defs/t"},
                 {"$defs",
                  {{"t", {{"type", "object"}, {"properties", {{"l", {{"$ref", "#/$defs/t"}}}, {"v", kInteger}}}}}}}}),
        "");
}

TEST(SchemaCheck, names_are_bounded) {
    EXPECT_EQ(refusal({{"properties", {{std::string(1024, '_'), kInteger}}}}), "");
    EXPECT_NE(refusal({{"properties", {{std::string(1025, '_'), kInteger}}}}).find("1024 bytes, found one of 1025"),
              std::string::npos);
    EXPECT_NE(refusal({{"$ref", "#/" + std::string(5000, '_')}}), "");
    json deep = kInteger;
    for (int i = 0; i < 60; i++) deep = object_of(1, {{"properties", {{std::string(1024, 'n'), deep}}}});
    EXPECT_EQ(refusal(deep), "");
    json wide = object_of(500, {{"properties", {{"x", kInteger}}}});
    for (int i = 0; i < 60; i++) wide = {{"properties", {{std::string(1024, 'n'), wide}}}};
    EXPECT_NE(refusal(wide).find("8 MiB"), std::string::npos) << refusal(wide).substr(0, 200);
}

TEST(SchemaCheck, counts_whose_least_is_above_the_most_are_refused) {
    for (const json& schema :
         {json{{"type", "array"}, {"items", kInteger}, {"minItems", 5}, {"maxItems", 2}},
          json{{"type", "string"}, {"minLength", 7}, {"maxLength", 3}}, json{{"type", "string"}, {"minLength", -1}},
          json{{"type", "string"}, {"maxLength", 4294967296}}, json{{"type", "string"}, {"maxLength", 1.5}},
          json{{"type", "array"}, {"maxItems", "x"}}, json{{"type", "string"}, {"pattern", "^a{5,2}$"}}})
        EXPECT_NE(refusal(schema), "") << schema;
    for (const json& schema :
         {json{{"type", "array"}, {"items", kInteger}, {"minItems", 2}, {"maxItems", 2}},
          json{{"type", "string"}, {"minLength", 0}, {"maxLength", 5000}}, json{{"type", "array"}, {"minItems", 1}},
          json{{"type", "integer"}, {"minLength", 9}, {"maxLength", 1}}})
        EXPECT_EQ(refusal(schema), "") << schema;
    EXPECT_NE(refusal(object_of(200, {{"type", "string"}, {"maxLength", 2000}}, true)).find("200000 repetitions"),
              std::string::npos);
    EXPECT_EQ(refusal(object_of(90, {{"type", "string"}, {"maxLength", 2000}}, true)), "");
}

// of some the engine wrote out digits for ever
TEST(SchemaCheck, bounds_of_integers_are_those_of_which_a_grammar_comes) {
    const auto bounded = [](const char* bounds) {
        json schema = json::parse(bounds);
        schema["type"] = "integer";
        return refusal(schema);
    };
    for (const char* bounds :
         {R"({"minimum":7,"maximum":3})", R"({"minimum":18446744073709551615})", R"({"maximum":1e300})",
          R"({"minimum":1000000000000000})", R"({"maximum":-1000000000000000})",
          R"({"minimum":-9223372036854775807,"maximum":-9223372036854775807})",
          R"({"exclusiveMinimum":9223372036854775807})", R"({"exclusiveMinimum":3,"exclusiveMaximum":4})"})
        EXPECT_NE(bounded(bounds), "") << bounds;
    for (const char* bounds :
         {R"({"minimum":0})", R"({"minimum":-5,"maximum":5})", R"({"minimum":999999999999999})",
          R"({"maximum":9007199254740991})", R"({"minimum":-9007199254740991,"maximum":9007199254740991})",
          R"({"minimum":-9007199254740991})", R"({"minimum":-9223372036854775808,"maximum":9223372036854775807})",
          R"({"minimum":-2147483648,"maximum":2147483647})", R"({"exclusiveMinimum":0})",
          R"({"minimum":0.5,"maximum":99.5})", R"({"minimum":"x"})",
          R"({"minimum":1000000000000000000,"maximum":2000000000000000000})"})
        EXPECT_EQ(bounded(bounds), "") << bounds;
}

TEST(SchemaCheck, patterns_are_followed_and_bounded) {
    std::string optional = "^";
    for (int i = 0; i < 60; i++) optional += "a?";
    EXPECT_NE(refusal({{"type", "string"}, {"pattern", optional + "$"}}).find("ambiguous"), std::string::npos);
    EXPECT_NE(refusal({{"type", "string"}, {"pattern", "^" + std::string(20'000, 'a') + "$"}}).find("16384"),
              std::string::npos);
    EXPECT_EQ(refusal({{"type", "string"}, {"pattern", "^[a-z0-9._%+-]+@[a-z0-9.-]+[.][a-z]{2,}$"}}), "");
    // which pattern makes no grammar does not matter then, but what it costs does
    EXPECT_EQ(refusal({{"type", "string"}, {"pattern", "^a\\!$"}}, false), "");
    EXPECT_NE(refusal({{"type", "string"}, {"pattern", optional + "$"}}, false), "");
}

TEST(SchemaCheck, the_tools_of_a_request_count_together) {
    json tools = json::array();
    for (int i = 0; i < 100; i++)
        tools.push_back(
            {{"type", "function"},
             {"function", {{"name", "f" + std::to_string(i)}, {"parameters", object_of(300, kInteger, true)}}}});
    auto checked = check_request("/v1/chat/completions", json{{"tools", tools}}.dump());
    ASSERT_FALSE(checked.ok());
    EXPECT_NE(checked.error().message().find("in all schemas of the request"), std::string::npos)
        << checked.error().message();
    tools.erase(tools.begin() + 50, tools.end());
    EXPECT_TRUE(check_request("/v1/chat/completions", json{{"tools", tools}}.dump()).ok());
    json many = json::array();
    for (int i = 0; i < 1025; i++) many.push_back({{"type", "function"}, {"function", {{"name", "f"}}}});
    EXPECT_FALSE(check_request("/v1/chat/completions", json{{"tools", many}}.dump()).ok());
}

}  // namespace
}  // namespace onebit
