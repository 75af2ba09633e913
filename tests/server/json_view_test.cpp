// Breaks when a field of a request is read as another value than the engine reads.
#include "server/supervisor/json_view.h"

#include <gtest/gtest.h>

#include <random>

#include <nlohmann/json.hpp>

#include "server/supervisor/request_body.h"

namespace onebit {
namespace {

using nlohmann::ordered_json;

// The same value, built from what the view gives.
ordered_json rebuilt(const JsonView& view) {
    switch (view.kind()) {
        case JsonView::Kind::object: {
            ordered_json object = ordered_json::object();
            for (JsonView::Walk walk = view.walk(); walk.next();) object[walk.key()] = rebuilt(walk.value());
            return object;
        }
        case JsonView::Kind::array: {
            ordered_json array = ordered_json::array();
            for (JsonView::Walk walk = view.walk(); walk.next();) array.push_back(rebuilt(walk.value()));
            return array;
        }
        case JsonView::Kind::string:
            return view.string();
        case JsonView::Kind::number:
            return view.number();
        case JsonView::Kind::boolean:
            return view.is_true();
        case JsonView::Kind::null:
            break;
    }
    return nullptr;
}

TEST(JsonView, reads_what_the_parser_reads) {
    std::mt19937 random(3);
    const std::string pieces[] = {"{",  "}",      "[",     "]",        ",",        ":",
                                  " ",  "\n",     "\"a\"", "\"\\\"\"", "\"\\\\\"", "\"{[\"",
                                  "1",  "-2.5e1", "true",  "null",     "\"k\":",   "\"\\u00e9\":",
                                  "[]", "{}",     "\"]}\""};
    size_t valid = 0;
    for (int i = 0; i < 100'000; i++) {
        std::string text = i % 2 ? "[" : "{";
        for (size_t length = random() % 9; length > 0; length--) text += pieces[random() % std::size(pieces)];
        text += i % 2 ? "]" : "}";
        const auto parsed = ordered_json::parse(text, nullptr, false);
        const auto view = rebuilt(JsonView(text));  // whatever the text is, it ends
        if (parsed.is_discarded() || !scan_request_body(text).ok()) continue;
        valid++;
        ASSERT_EQ(view, parsed) << text;
    }
    EXPECT_GT(valid, 1000u);
}

TEST(JsonView, whole_numbers_are_those_that_fit) {
    const auto whole = [](const char* text) { return JsonView(text).whole(-1, 2147483647); };
    EXPECT_EQ(whole("0"), 0);
    EXPECT_EQ(whole("-1"), -1);
    EXPECT_EQ(whole("2147483647"), 2147483647);
    EXPECT_EQ(whole("128.0"), 128);
    EXPECT_EQ(whole("1e3"), 1000);
    for (const char* text : {"-2", "2147483648", "4294967297", "1.5", "1e300", "18446744073709551616", "true", "\"1\"",
                             "null", "[]", "99999999999999999999999999999999999999"})
        EXPECT_FALSE(whole(text)) << text;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(JsonView("9223372036854775807").whole(0, kMost), kMost);
    EXPECT_FALSE(JsonView("9223372036854775808").whole(0, kMost));
    EXPECT_FALSE(JsonView("9223372036854775808.0").whole(0, kMost));
}

TEST(JsonView, the_last_member_of_a_name_counts_and_null_is_none) {
    const JsonView view(R"( {"a":1,"b":null,"\u0061":2, "c":"x"} )");
    EXPECT_EQ(view.member("a")->whole(0, 9), 2);
    EXPECT_FALSE(view.member("b"));
    EXPECT_FALSE(view.member("d"));
    EXPECT_EQ(view.count(100), 4u);
    EXPECT_EQ(view.count(2), 2u);
    EXPECT_FALSE(JsonView("[1]").member("a"));
}

TEST(JsonView, a_string_is_the_same_however_it_is_escaped) {
    for (const char* text : {R"("auto")", R"("\u0061uto")", R"("\u0061\u0075\u0074\u006F")", R"( "aut\u006f" )"})
        EXPECT_TRUE(JsonView(text).is("auto")) << text;
    for (const char* text :
         {R"("aut")", R"("autos")", R"("\\u0061uto")", R"("\u0061")", R"("")", "auto", "null", "[\"auto\"]", "\""})
        EXPECT_FALSE(JsonView(text).is("auto")) << text;
    EXPECT_TRUE(JsonView(R"("")").is(""));
    EXPECT_TRUE(JsonView(R"("\/\u0000")").is(std::string_view("/\0", 2)));
}

TEST(JsonView, values_are_described_shortly) {
    EXPECT_EQ(JsonView("-5").described(), "-5");
    EXPECT_EQ(JsonView("true").described(), "true");
    EXPECT_EQ(JsonView("\"x\"").described(), "'x'");
    EXPECT_EQ(JsonView("\"" + std::string(1000, 'x') + "\"").described(), "a string");
    EXPECT_EQ(JsonView(std::string(300, '7')).described(), "a number of 300 digits");
    EXPECT_EQ(JsonView("{\"a\":1}").described(), "an object");
}

// not only JSON: any bytes are read without harm
TEST(JsonView, any_bytes_end) {
    for (const char* text : {"", " ", "{", "[", "\"", "\"\\", "{\"", "{\"a", "{\"a\"", "{\"a\":", "[1,", "]", "}", ",",
                             "[[", "{\"a\":{"}) {
        const JsonView view(text);
        rebuilt(view);
        view.member("a");
        view.described();
    }
    std::string deep(100'000, '[');
    EXPECT_EQ(JsonView(deep).count(5), 1u);
}

}  // namespace
}  // namespace onebit
