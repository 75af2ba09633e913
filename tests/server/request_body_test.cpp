// Breaks when bad bytes reach an engine, a good request is refused, or the wrong model is picked from a body.
#include "server/supervisor/request_body.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace onebit {
namespace {

std::string model_of(std::string_view body) {
    Result<RequestFacts> facts = scan_request_body(body);
    return facts.ok() ? facts->model : "error: " + facts.error().message();
}

std::string fault_of(std::string_view body) {
    Result<RequestFacts> facts = scan_request_body(body);
    return facts.ok() ? "" : facts.error().message();
}

TEST(RequestBody, finds_model_and_stream_at_the_top_only) {
    EXPECT_EQ(model_of(R"({"model":"a"})"), "a");
    EXPECT_EQ(model_of(R"( { "x" : {"model":"no"}, "y":[{"model":"no"}], "model" : "a" } )"), "a");
    EXPECT_EQ(model_of(R"({"model":"a","model":"b"})"), "b");
    EXPECT_EQ(model_of(R"({"mod\u0065l":"\u0061\n\ud83e\udd50é"})"), "a\n🥐é");
    EXPECT_EQ(model_of(R"({"model":7})"), "");
    EXPECT_EQ(model_of(R"({"model":{"model":"x"}})"), "");
    EXPECT_EQ(model_of(R"({"model":["x"]})"), "");
    EXPECT_EQ(model_of(R"({"model":"a","model":null})"), "");
    EXPECT_EQ(model_of("{}"), "");
    EXPECT_EQ(model_of(R"(["model","x"])"), "");
    EXPECT_TRUE(scan_request_body(R"({"stream":true})")->stream);
    EXPECT_FALSE(scan_request_body(R"({"stream":false})")->stream);
    EXPECT_FALSE(scan_request_body(R"({"stream":"true"})")->stream);
    EXPECT_FALSE(scan_request_body(R"({"a":{"stream":true}})")->stream);
    EXPECT_FALSE(scan_request_body(R"({"stream":true,"stream":false})")->stream);
    EXPECT_TRUE(scan_request_body("{}")->object);
    EXPECT_FALSE(scan_request_body("[]")->object);
    EXPECT_FALSE(scan_request_body("7")->object);
}

TEST(RequestBody, names_the_position_of_a_fault) {
    EXPECT_NE(fault_of("{\"a\":1,\n  \"b\":x}").find("line 2, column 7 (byte 14)"), std::string::npos)
        << fault_of("{\"a\":1,\n  \"b\":x}");
    EXPECT_NE(fault_of("{").find("the end of the body"), std::string::npos);
    EXPECT_NE(fault_of("{} x").find("'x'"), std::string::npos);
    EXPECT_NE(fault_of("").find("byte 0"), std::string::npos);
}

TEST(RequestBody, refuses_what_is_no_json) {
    for (std::string_view bad : {"",
                                 " ",
                                 "{",
                                 "}",
                                 "[",
                                 "{]",
                                 "[}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "[1,]",
                                 "{a:1}",
                                 "{'a':1}",
                                 "01",
                                 "-",
                                 "1.",
                                 "1e",
                                 "+1",
                                 ".5",
                                 "tru",
                                 "nul",
                                 "True",
                                 "NaN",
                                 "\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\ud800\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\udc00\"",
                                 "\"a\nb\"",
                                 "{\"a\":1 \"b\":2}",
                                 "[1 2]",
                                 "// x",
                                 "{\"a\":1}{}",
                                 "\"\t\""})
        EXPECT_NE(fault_of(bad), "") << bad;
    using namespace std::string_view_literals;
    EXPECT_NE(fault_of("\0"sv), "");
    EXPECT_NE(fault_of("{\"a\":\"\0\"}"sv), "");
    EXPECT_NE(fault_of("\xef\xbb\xbf{}"sv), "");  // a byte order mark is no JSON
}

// API01
TEST(RequestBody, API01_bytes_that_are_no_utf8) {
    for (std::string_view bytes : {"\xc4\xe3", "\xff", "\xe2\x82", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                   "\x80", "\xf8\x88\x80\x80\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xc1\xbf"}) {
        for (std::string body :
             {"{\"a\":\"" + std::string(bytes) + "\"}", "{\"" + std::string(bytes) + "\":1}", std::string(bytes)}) {
            std::string message = fault_of(body);
            EXPECT_NE(message, "");
            for (unsigned char c : message) EXPECT_LT(c, 0x80);  // API02: never the raw bytes
        }
    }
    EXPECT_EQ(fault_of("\"é€🥐\xf4\x8f\xbf\xbf\""), "");
}

TEST(RequestBody, depth_is_bounded_and_cannot_exhaust_the_stack) {
    auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_EQ(fault_of(nested(255)), "");
    EXPECT_EQ(fault_of(nested(256)), "");
    EXPECT_NE(fault_of(nested(257)), "");
    EXPECT_NE(fault_of(std::string(10u << 20, '[')), "");
    std::string objects;
    for (int i = 0; i < 100000; i++) objects += "{\"a\":";
    EXPECT_NE(fault_of(objects), "");
}

std::string object_of(size_t keys) {
    std::string text = "{";
    for (size_t i = 0; i < keys; i++) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
    return text + "}";
}

// the engine's objects compare each new key with all before it: a million keys would keep a thread busy for an hour
TEST(RequestBody, keys_of_objects_are_bounded) {
    EXPECT_TRUE(scan_request_body(object_of(10'000)).ok());
    auto refused = scan_request_body(object_of(10'002));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
    EXPECT_NE(refused.error().message().find("at most 10,000 keys"), std::string::npos) << refused.error().message();
    EXPECT_FALSE(scan_request_body("{\"a\":[" + object_of(9'000) + "," + object_of(9'000) + "]}").ok());
    // many small objects, such as the messages of a long chat, are no such work
    std::string list = "[" + object_of(8);
    for (int i = 0; i < 200'000; i++) list += "," + object_of(8);
    EXPECT_TRUE(scan_request_body(list + "]").ok());
    EXPECT_FALSE(scan_request_body(object_of(1'000'000)).ok());
}

TEST(RequestBody, names_of_any_length_are_cut_not_kept) {
    Result<RequestFacts> facts = scan_request_body("{\"model\":\"" + std::string(5u << 20, 'm') + "\"}");
    ASSERT_TRUE(facts.ok());
    EXPECT_LE(facts->model.size(), 4096u);
}

// the engine ends its parse at such a number, and repeats all digits of it
TEST(RequestBody, numbers_that_no_double_holds_are_refused_without_their_digits) {
    const std::string long_number(400, '7');
    for (const std::string& number :
         {std::string("1e999"), long_number, "-" + long_number, std::string("1e309"), std::string("1.8e308"),
          "0.001e" + long_number, long_number + ".5", std::string("10e308")}) {
        const std::string message = fault_of("{\n\"temperature\":" + number + "}");
        EXPECT_NE(message.find("line 2, column 15"), std::string::npos) << message;
        EXPECT_NE(message.find("characters long"), std::string::npos) << message;
        EXPECT_EQ(message.find("7777"), std::string::npos) << message;
    }
    for (const std::string& number :
         {std::string("1e308"), std::string("1.7e308"), std::string("1e-999"), "0." + long_number, std::string("0e999"),
          "0." + std::string(400, '0') + "1", "1e-" + long_number, std::string(308, '9'),
          "0." + std::string(400, '0') + "1e300"})
        EXPECT_EQ(fault_of("[" + number + "]"), "") << number;
}

// The engine parses the body again: both must agree on what is JSON.
TEST(RequestBody, agrees_with_the_parser_of_the_engine) {
    std::mt19937 random(7);
    const std::string seed =
        R"({"model":"m","messages":[{"role":"user","content":"h\u00e9llo \"x\""}],"n":-1.5e+3,"s":true,"z":null})";
    const std::string bytes = "{}[]\",:\\tfn01-.eu \n\x80\xc3\xa9";
    for (int i = 0; i < 20000; i++) {
        std::string body = seed;
        for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; edits--) {
            size_t at = random() % body.size();
            switch (random() % 3) {
                case 0:
                    body[at] = bytes[random() % bytes.size()];
                    break;
                case 1:
                    body.erase(at, 1 + random() % 4);
                    break;
                default:
                    body.insert(at, 1, bytes[random() % bytes.size()]);
                    break;
            }
            if (body.empty()) body = " ";
        }
        auto theirs = nlohmann::json::parse(body, nullptr, false);
        Result<RequestFacts> ours = scan_request_body(body);
        ASSERT_EQ(!theirs.is_discarded(), ours.ok()) << body << "\n" << (ours.ok() ? "" : ours.error().message());
        if (!ours.ok()) continue;
        std::string model = theirs.is_object() && theirs.contains("model") && theirs["model"].is_string()
                                ? theirs["model"].get<std::string>()
                                : "";
        ASSERT_EQ(ours->model, model) << body;
    }
}

}  // namespace
}  // namespace onebit
