// Breaks when a field of another server's API is passed over instead of obeyed or refused.
#include "server/supervisor/request_rewrite.h"

#include <random>

#include "rewrite_testing.h"
#include "server/supervisor/request_body.h"

namespace onebit {
namespace {

using nlohmann::json;

constexpr const char* kCompletionPath = "/v1/completions";

std::string body(const std::string& member) { return "{" + member + "}"; }

TEST(RequestRewrite, a_null_is_as_if_absent_on_every_route) {
    for (const char* path :
         {kChatPath, kCompletionPath, "/completion", "/infill", kResponsesPath, kMessagesPath, "/tokenize",
          "/detokenize", "/v1/embeddings", "/v1/rerank", "/apply-template", "/v1/messages/count_tokens"})
        expect_sent(path, R"({"a":null,"encoding_format":null,"reasoning_format":null,"stop":null,"tools":null,"z":1})",
                    R"({"z":1})");
    expect_same("/props", R"({"a":null})");
    expect_sent(kChatPath, R"({"stop":["x"],"st\u006fp":null,"n":null})", "{}");
    expect_sent(kChatPath, R"({"stop":null,"stop":["x"]})", R"({"stop":["x"]})");
    expect_same(kChatPath, R"({"chat_template_kwargs":{"a":null},"logit_bias":{},"stream_options":{"x":null}})");
}

TEST(RequestRewrite, empty_stop_strings_are_left_out) {
    expect_sent(kChatPath, R"({"stop":"","z":1})", R"({"z":1})");
    expect_sent(kChatPath, R"({"stop":[""]})", R"({"stop":[]})");
    expect_sent(kCompletionPath, R"({"stop":["","a",null,"b",""]})", R"({"stop":["a","b"]})");
    expect_sent(kMessagesPath, R"({"stop_sequences":["","a"]})", R"({"stop_sequences":["a"]})");
    expect_same(kChatPath, R"({"stop":["a"," "]})");
    expect_same(kChatPath, R"({"stop":[]})");
    expect_refused(kChatPath, R"({"stop":["",7]})", "stop[0]'");
}

TEST(RequestRewrite, no_top_logprobs_without_logprobs_are_as_if_absent) {
    for (const char* path : {kChatPath, kResponsesPath}) {
        expect_sent(path, R"({"top_logprobs":0})", "{}");
        expect_sent(path, R"({"top_logprobs":0,"logprobs":false})", R"({"logprobs":false})");
        expect_sent(path, R"({"top_logprobs":null,"logprobs":true})", R"({"logprobs":true})");
        expect_same(path, R"({"top_logprobs":0,"logprobs":true})");
        expect_same(path, R"({"top_logprobs":5})");  // the engine says that logprobs is missing
    }
}

TEST(RequestRewrite, forms_of_other_servers_become_the_engines) {
    const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}}})";
    for (const char* path : {kChatPath, kCompletionPath, "/completion", kResponsesPath}) {
        for (const std::string& form :
             {std::string("\"guided_json\":") + schema, "\"guided_json\":" + json(schema).dump(),
              "\"format\":" + schema,
              R"("structured_outputs":{"json":)" + schema + R"(,"regex":null,"json_object":false})"})
            expect_sent(path, body(form), R"({"json_schema":)" + schema + "}");
        for (const char* form : {R"("format":"json")", R"("structured_outputs":{"json_object":true})"})
            expect_sent(path, body(form), R"({"json_schema":{"type":"object"}})");
        for (const char* form : {R"("guided_grammar":"root ::= \"a\"")", R"("ebnf":"root ::= \"a\"")",
                                 R"("structured_outputs":{"grammar":"root ::= \"a\""})"})
            expect_sent(path, body(form), R"({"grammar":"root ::= \"a\""})");
        for (const char* form :
             {R"("guided_choice":["a","b \"c\"\\\n"])", R"("structured_outputs":{"choice":["a","b \"c\"\\\n"]})"})
            EXPECT_EQ(sent(path, body(form)), json({{"grammar", R"(root ::= "a" | "b \"c\"\\\x0A")"}})) << form;
        for (const char* form : {R"("format":"")", R"("structured_outputs":{})", R"("guided_regex":null)"})
            expect_sent(path, body(form), "{}");
        expect_sent(path, R"({"guided_json":{},"grammar":"","response_format":{"type":"text"}})",
                    R"({"json_schema":{},"response_format":{"type":"text"}})");
    }
}

// JSON lets any letter be written as an escape, in values as in names.
TEST(RequestRewrite, a_value_means_the_same_however_it_is_escaped) {
    const auto with = [](const std::string& members) {
        return R"({"messages":[{"role":"user","content":"x"}],)" + members + "}";
    };
    expect_sent(kChatPath, with(R"("format":"js\u006fn")"), with(R"("json_schema":{"type":"object"})"));
    expect_same(kChatPath, with(R"("modalities":["t\u0065xt"])"));
    expect_same(kChatPath, with(R"("function_call":"n\u006fne")"));
    expect_refused(kChatPath, with(R"("tools":[{"type":"functi\u006fn"}])"), "tools[0].function'");
    expect_refused(kChatPath, R"({"messages":[{"role":"user","content":[{"type":"t\u0065xt"}]}]})",
                   "messages[0].content[0].text'");
    expect_sent(
        kChatPath,
        R"({"messages":[{"role":"assist\u0061nt","refusal":"no"},{"role":"assistant","content":[{"type":"refus\u0061l","refusal":"n"}]}]})",
        R"({"messages":[{"content":"no","role":"assistant","refusal":"no"},{"role":"assistant","content":[{"type":"text","text":"n"}]}]})");
}

TEST(RequestRewrite, forms_that_cannot_be_held_are_refused_by_their_own_name) {
    for (const char* path : {kChatPath, kCompletionPath}) {
        expect_refused(path, R"({"guided_regex":"a+"})", "guided_regex': expected none, found a regular expression");
        expect_refused(path, R"({"regex":"a+"})", "regex'");
        expect_refused(path, R"({"structured_outputs":{"regex":"a+"}})", "structured_outputs.regex'");
        expect_refused(path, R"({"structured_outputs":{"structural_tag":"a"}})", "structured_outputs.structural_tag'");
        expect_refused(path, R"({"structured_outputs":7})", "structured_outputs'");
        expect_refused(path, R"({"guided_json":"x"})", "guided_json': expected a JSON schema");
        expect_refused(path, R"({"guided_json":"[1]"})", "guided_json'");
        expect_refused(path, R"({"guided_json":7})", "guided_json'");
        expect_refused(path, R"({"guided_json":{"type":"string","pattern":"x"}})", "guided_json.pattern'");
        expect_refused(path, R"({"guided_grammar":"start: \"a\""})", "guided_grammar'");
        expect_refused(path, R"({"guided_grammar":7})", "guided_grammar': expected a grammar in GBNF");
        expect_refused(path, R"({"guided_choice":[]})", "guided_choice'");
        expect_refused(path, R"({"guided_choice":["a",7]})", "guided_choice[1]'");
        expect_refused(path, R"({"guided_choice":["a\u0000"]})", "guided_choice[0]'");
        expect_refused(path, R"({"guided_choice":["a",")" + std::string(3 << 20, 'x') + "\"]}",
                       "guided_choice': expected at most 2097152 bytes");
        expect_refused(path, R"({"format":"yaml"})", "format': expected json or a JSON schema");
        expect_refused(path, R"({"guided_json":{},"guided_choice":["a"]})", "guided_choice': expected one form");
        expect_refused(path, R"({"guided_json":{},"json_schema":{}})", "guided_json': expected one form");
        expect_refused(path, R"({"format":"json","grammar":"root ::= \"a\""})", "format': expected one form");
    }
    expect_refused(kChatPath, R"({"format":"json","response_format":{"type":"json_object"}})", "format'");
    // a body within a string is held to the limits of bodies
    expect_refused(kChatPath,
                   json{{"guided_json", "{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}"}}.dump(),
                   "guided_json'");
    for (const char* form : {R"("guided_json":{})", R"("format":"json")", R"("json_schema":{})",
                             R"("grammar":"root ::= \"a\"")", R"("response_format":{"type":"json_object"})"})
        expect_refused(kMessagesPath, body(form), body(form).substr(2, body(form).find('"', 2) - 2));
    expect_same(kMessagesPath, R"({"response_format":{"type":"text"}})");
}

TEST(RequestRewrite, text_format_is_obeyed_or_refused) {
    const std::string text = R"("text":{"format":{"type":"json_object"}})";
    EXPECT_EQ(sent(kChatPath, body(text))["response_format"], json({{"type", "json_object"}}));
    expect_refused(kCompletionPath, body(text), "text.format'");
    expect_refused(kMessagesPath, body(text), "text.format'");
    expect_refused(kChatPath, body(text + R"(,"response_format":{"type":"json_object"})"), "text.format'");
    expect_same(kCompletionPath, R"({"text":{"format":{"type":"text"}}})");
    expect_same(kChatPath, R"({"text":{"verbosity":"low"}})");
}

TEST(RequestRewrite, what_the_engine_would_pass_over_is_refused) {
    const std::pair<const char*, std::vector<const char*>> refused[] = {
        {kCompletionPath,
         {R"("echo":true)", R"("suffix":"x")", R"("best_of":2)", R"("best_of":3,"n":2)", R"("best_of":"x")",
          R"("prompt_logprobs":1)", R"("use_beam_search":true)"}},
        {kChatPath,
         {R"("functions":[{"name":"f"}])", R"("function_call":{"name":"f"})", R"("modalities":["text","audio"])",
          R"("audio":{"voice":"x"})", R"("web_search_options":{})"}},
        {kResponsesPath, {R"("conversation":"c")", R"("background":true)", R"("prompt":{"id":"p"})"}},
        {kMessagesPath, {R"("mcp_servers":[{"url":"x"}])", R"("container":"c")"}},
    };
    for (const auto& [path, members] : refused)
        for (const std::string member : members)
            expect_refused(path, body(member), member.substr(1, member.find('"', 1) - 1) + "'");
    for (const char* member :
         {R"("echo":false)", R"("suffix":"")", R"("best_of":1)", R"("best_of":2,"n":2)", R"("use_beam_search":false)"})
        expect_same(kCompletionPath, body(member));
    for (const char* member : {R"("functions":[])", R"("function_call":"auto")", R"("function_call":"none")",
                               R"("modalities":["text"])", R"("echo":true)", R"("suffix":"x")"})
        expect_same(kChatPath, body(member));
    expect_same(kResponsesPath, R"({"background":false,"store":true})");
}

TEST(RequestRewrite, a_body_without_a_fault_goes_on_as_it_came) {
    expect_same(kChatPath, " {\"messages\": [ {\"role\":\"user\",\"content\":\"null\"} ], \"max_tokens\" : 5.0 }\n");
    const std::string changed = *check_request(kChatPath, R"({"a": 1.50e1, "n":null, "b":"\u00e4\/"})")->body;
    EXPECT_EQ(changed, R"({"a": 1.50e1, "b":"\u00e4\/"})");
}

// Bodies of the words that are read, put together by chance.
class Chance {
public:
    explicit Chance(unsigned seed) : random_(seed) {}
    std::string value(int depth) {
        static const std::vector<std::string> kValues = {
            "null",          "null",         "true",        "0",
            "1.5",           "\"\"",         "\"x\"",       "\"auto\"",
            "\"required\"",  "\"function\"", "\"message\"", "\"reasoning\"",
            "\"refusal\"",   "\"text\"",     "\"user\"",    "\"assistant\"",
            "\"tool\"",      "\"any\"",      "\"none\"",    "\"allowed_tools\"",
            "\"a\\\"b\\\\\""};
        const unsigned kind = random_() % (depth > 0 ? 4 : 2);
        if (kind < 2) return one_of(kValues);
        const bool object = kind == 2;
        std::string text = object ? "{" : "[";
        for (unsigned i = random_() % 5; i > 0; i--) {
            if (text.size() > 1) text += random_() % 4 ? "," : " ,\n ";
            if (object) text += "\"" + name() + (random_() % 4 ? "\":" : "\" : ");
            text += value(depth - 1);
        }
        return text + (object ? "}" : "]");
    }
    std::string body() {
        std::string text = "{";
        for (unsigned i = random_() % 6; i > 0; i--)
            text += (text.size() > 1 ? ",\"" : "\"") + name() + "\":" + value(4);
        return text + "}";
    }

private:
    std::mt19937 random_;
    const std::string& one_of(const std::vector<std::string>& list) { return list[random_() % list.size()]; }
    const std::string& name() {
        static const std::vector<std::string> kNames = {
            "messages", "input", "tools",     "tool_choice",   "role",         "content", "type",       "text",
            "function", "name",  "arguments", "tool_calls",    "refusal",      "summary", "call_id",    "output",
            "stop",     "mode",  "format",    "guided_choice", "top_logprobs", "n",       "r\\u006fle", "other"};
        return one_of(kNames);
    }
};

TEST(RequestRewrite, what_comes_out_is_json_and_needs_no_second_rewriting) {
    Chance chance(7);
    int changed = 0;
    for (int i = 0; i < 40'000; i++) {
        const std::string text = chance.body();
        ASSERT_TRUE(scan_request_body(text).ok()) << text;
        for (const char* path : {kChatPath, kResponsesPath, kMessagesPath, kCompletionPath}) {
            auto first = check_request(path, text);
            if (!first.ok() || !first->body) continue;
            changed++;
            ASSERT_TRUE(scan_request_body(*first->body).ok()) << text << "\n" << *first->body;
            auto second = check_request(path, *first->body);
            ASSERT_TRUE(second.ok()) << path << text << "\n" << *first->body << "\n" << second.error().message();
            EXPECT_FALSE(second->body) << path << text << "\n" << *first->body << "\n" << *second->body;
        }
    }
    EXPECT_GT(changed, 1000);
}

}  // namespace
}  // namespace onebit
