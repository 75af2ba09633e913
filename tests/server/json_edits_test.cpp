// Breaks when a rewritten request is no JSON any more, or has changed where it should not.
#include "server/supervisor/json_edits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace onebit {
namespace {

std::string without(const std::string& text, const std::string& unwanted) {
    const JsonView view(text);
    JsonEdits edits(view);
    const auto list = view.member("x");
    edits.cut(*list, [&](const JsonView::Walk& walk, size_t) {
        const std::string name = list->kind() == JsonView::Kind::object ? walk.key() : walk.value().string();
        return unwanted.find(name) != std::string::npos;
    });
    return *edits.applied();
}

TEST(JsonEdits, any_members_and_elements_can_be_taken_out) {
    for (int mask = 0; mask < 16; mask++) {
        std::string unwanted;
        nlohmann::json list = nlohmann::json::array(), object = nlohmann::json::object();
        for (int i = 0; i < 4; i++) {
            const std::string name(1, static_cast<char>('a' + i));
            if (mask & 1 << i)
                unwanted += name;
            else
                list.push_back(name), object[name] = i;
        }
        for (const char* text : {R"({"x":["a","b","c","d"]})", "{ \"x\" : [ \"a\" ,\n\"b\" , \"c\",\"d\" ] }"})
            EXPECT_EQ(nlohmann::json::parse(without(text, unwanted))["x"], list) << mask;
        for (const char* text :
             {R"({"x":{"a":0,"b":1,"c":2,"d":3}})", "{\"x\": { \"a\": 0 , \"b\":1\t, \"c\" :2, \"d\":3 }}"})
            EXPECT_EQ(nlohmann::json::parse(without(text, unwanted))["x"], object) << mask;
    }
    EXPECT_EQ(without(R"({"x":[ ]})", "a"), R"({"x":[ ]})");
}

TEST(JsonEdits, members_are_dropped_and_set) {
    const std::string text = R"({"a":1,"b":[1, 2],"\u0061":3})";
    const JsonView view(text);
    JsonEdits edits(view);
    EXPECT_TRUE(edits.empty());
    edits.drop("a");
    EXPECT_EQ(*edits.applied(), R"({"b":[1, 2]})");
    JsonEdits all(view);
    all.set("a", "{}");
    all.drop("b");
    all.set("c", "4");
    EXPECT_EQ(*all.applied(), R"({"a":{},"c":4})");
    const std::string nothing = "{ }";
    JsonEdits first{JsonView(nothing)};
    first.set("a", "1");
    EXPECT_EQ(nlohmann::json::parse(*first.applied()), nlohmann::json({{"a", 1}}));
}

TEST(JsonEdits, the_outer_one_of_two_changes_counts) {
    const std::string text = R"({"a":{"n":null,"b":{"n":null,"c":1}},"d":[null]})";
    const JsonView view(text), a = *view.member("a"), b = *a.member("b");
    JsonEdits edits(view);
    edits.cut_nulls(b);
    edits.cut_nulls(a);
    edits.insert(a, "new", "2");
    EXPECT_EQ(*edits.applied(), R"({"a":{"new":2,"b":{"c":1}},"d":[null]})");
    JsonEdits outer(view);
    outer.cut_nulls(b);
    outer.replace(a, "7");
    EXPECT_EQ(*outer.applied(), R"({"a":7,"d":[null]})");
    JsonEdits dropped(view);
    dropped.cut_nulls(b);
    dropped.drop("a");
    EXPECT_EQ(*dropped.applied(), R"({"d":[null]})");
}

TEST(JsonEdits, the_last_of_a_name_decides_whether_it_is_null) {
    const auto cut = [](const std::string& text) {
        const JsonView view(text);
        JsonEdits edits(view);
        edits.cut_nulls(view, {"kept"});
        return *edits.applied();
    };
    EXPECT_EQ(cut(R"({"a":1,"a":null,"b":2})"), R"({"b":2})");
    EXPECT_EQ(cut(R"({"a":null,"a":1})"), R"({"a":null,"a":1})");
    EXPECT_EQ(cut(R"({"a":null,"kept":null,"\u0061":null})"), R"({"kept":null})");
    EXPECT_EQ(cut(R"({"a":"null","b":[null],"c":{"d":null}})"), R"({"a":"null","b":[null],"c":{"d":null}})");
}

TEST(JsonEdits, changes_are_bounded) {
    std::string text = "{\"x\":[";
    for (int i = 0; i < 200'001; i++) text += std::string(i ? "," : "") + R"({"a":null})";
    text += "]}";
    const JsonView view(text);
    JsonEdits edits(view);
    const auto list = view.member("x");
    for (JsonView::Walk walk = list->walk(); walk.next();) edits.cut_nulls(walk.value());
    auto applied = edits.applied();
    ASSERT_FALSE(applied.ok());
    EXPECT_EQ(applied.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace onebit
