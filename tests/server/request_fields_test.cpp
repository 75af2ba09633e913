// Breaks when a field that the engine misreads, or that blocks or ends it, goes through, or what clients send is
// refused.
#include "server/supervisor/request_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/supervisor/request_check.h"
#include "server/supervisor/text_markers.h"
#include "server/supervisor/trigger_pattern.h"

namespace onebit {
namespace {

using nlohmann::json;

constexpr const char* kChat = "/v1/chat/completions";

std::string refusal(const std::string& path, const std::string& body) {
    auto checked = check_request(path, body);
    return checked.ok() ? "" : checked.error().message();
}

// Each body is one member of a request; the message must name the field.
void expect_refused(const std::string& path, std::initializer_list<const char*> members) {
    for (const std::string member : members) {
        const std::string message = refusal(path, "{" + member + "}");
        EXPECT_NE(message, "") << path << " " << member;
        if (message.empty()) continue;
        const std::string field = "field '" + member.substr(1, member.find('"', 1) - 1);
        EXPECT_TRUE(message.starts_with(field)) << message;
        EXPECT_NE(message.find(": expected "), std::string::npos) << message;
        EXPECT_NE(message.find(", found "), std::string::npos) << message;
    }
}

void expect_taken(const std::string& path, std::initializer_list<const char*> members) {
    for (const char* member : members)
        EXPECT_EQ(refusal(path, "{" + std::string(member) + "}"), "") << path << " " << member;
}

std::string list_of(size_t n, const std::string& element) {
    std::string text = "[";
    for (size_t i = 0; i < n; i++) text += (i ? "," : "") + element;
    return text + "]";
}

TEST(RequestFields, whole_numbers_that_would_wrap_or_be_cut_are_refused) {
    expect_refused(kChat, {R"("max_tokens":4294967297)",
                           R"("max_tokens":2147483648)",
                           R"("max_tokens":-2)",
                           R"("max_tokens":1.5)",
                           R"("max_tokens":1e300)",
                           R"("max_tokens":"5")",
                           R"("max_tokens":true)",
                           R"("n_predict":4294967297)",
                           R"("max_completion_tokens":99999999999999999999)",
                           R"("n":4294967297)",
                           R"("n_cmpl":0)",
                           R"("top_k":4294967296)",
                           R"("n_keep":2147483647)",
                           R"("n_discard":-1)",
                           R"("id_slot":4294967296)",
                           R"("id_slot":-7)",
                           R"("id_slot":"x")",
                           R"("mirostat":3)",
                           R"("seed":"x")",
                           R"("seed":1.5)",
                           R"("seed":99999999999999999999)",
                           R"("reasoning_budget_tokens":-2)",
                           R"("n_probs":-1)",
                           R"("top_logprobs":-1)",
                           R"("t_max_predict_ms":9223372036854775808)",
                           R"("sse_ping_interval":4294967296)"});
    expect_taken(kChat,
                 {R"("max_tokens":0)", R"("max_tokens":-1)", R"("max_tokens":2147483647)", R"("max_tokens":128.0)",
                  R"("max_tokens":null)", R"("n":1)", R"("top_k":-1)", R"("top_k":40)", R"("seed":-1)",
                  R"("seed":4294967296)", R"("seed":18446744073709551615)", R"("id_slot":-1)", R"("id_slot":99)",
                  R"("logprobs":true)", R"("logprobs":false)", R"("logprobs":5)", R"("top_logprobs":20)"});
    expect_refused("/v1/messages", {R"("max_tokens":4294967297)", R"("stream":1)", R"("thinking":true)"});
    expect_refused("/v1/responses", {R"("max_output_tokens":4294967297)"});
    expect_taken("/v1/messages", {R"("thinking":{"type":"enabled","budget_tokens":1024})", R"("max_tokens":1024)"});
}

// the engine allocates what it is told
TEST(RequestFields, windows_of_samplers_are_bounded) {
    for (const char* path : {kChat, "/completion", "/v1/completions", "/infill", "/v1/responses", "/completions"}) {
        expect_refused(path, {R"("repeat_last_n":2147483647)", R"("dry_penalty_last_n":2147483647)",
                              R"("repeat_last_n":1048577)"});
        expect_taken(path, {R"("repeat_last_n":1048576)", R"("repeat_last_n":0)", R"("dry_penalty_last_n":64)"});
    }
    expect_refused("/completion",
                   {R"("n_probs":5000)", R"("n_probs":5000,"n_predict":1000)", R"("logprobs":2000000,"max_tokens":1)"});
    expect_taken("/completion", {R"("n_probs":1000)", R"("n_probs":150000,"n_predict":1)"});
    expect_refused("/completion",
                   {R"("n":2,"prompt":"")", R"("n_cmpl":2,"prompt":["a",""])", R"("n":3,"prompt":["x",[]])"});
    expect_taken("/completion", {R"("n":1,"prompt":"")", R"("n":2,"prompt":"x")", R"("n":2,"prompt":["x",[1]])"});
    expect_refused("/completion",
                   {R"("repeat_penalty":1e7)", R"("frequency_penalty":-1e38)", R"("dry_multiplier":1e38)"});
    expect_refused("/completion", {R"("top_k":2147483647,"backend_sampling":true)"});
    expect_taken("/completion",
                 {R"("top_k":2147483647,"backend_sampling":false)", R"("top_k":40,"backend_sampling":true)"});
}

TEST(RequestFields, numbers_are_no_truth_values_and_fit_into_32_bits) {
    expect_refused(kChat,
                   {R"("temperature":true)", R"("temperature":"hot")", R"("temperature":1e39)", R"("temperature":[])",
                    R"("top_p":"x")", R"("presence_penalty":{})", R"("mirostat_tau":-1e300)"});
    expect_taken(kChat, {R"("temperature":0)", R"("temperature":0.7)", R"("temperature":null)", R"("temperature":-1)",
                         R"("top_p":1.0)", R"("presence_penalty":-2)", R"("min_p":0.05)"});
    expect_refused(kChat, {R"("stream":1)", R"("stream":"true")", R"("cache_prompt":0)", R"("parallel_tool_calls":1)",
                           R"("ignore_eos":"x")", R"("add_generation_prompt":1)"});
    expect_taken(kChat, {R"("stream":true)", R"("stream":null)", R"("parallel_tool_calls":false)"});
}

TEST(RequestFields, fields_of_wrong_types_are_refused) {
    expect_refused(kChat, {R"("stop":7)",
                           R"("stop":[7])",
                           R"("stop":{})",
                           R"("stream_options":7)",
                           R"("stream_options":[])",
                           R"("stream_options":{"include_usage":1})",
                           R"("logit_bias":7)",
                           R"("logit_bias":{"5":"x"})",
                           R"("logit_bias":{"5":true})",
                           R"("logit_bias":[[5]])",
                           R"("logit_bias":[7])",
                           R"("logit_bias":[[-1,5]])",
                           R"("logit_bias":[[4294967301,5]])",
                           R"("logit_bias":{"99999999999":1})",
                           R"("logit_bias":{"-5":1})",
                           R"("logit_bias":[[5,1e39]])",
                           R"("tool_choice":7)",
                           R"("tool_choice":"x")",
                           R"("tool_choice":[])",
                           R"("tool_choice":{})",
                           R"("chat_template_kwargs":7)",
                           R"("chat_template_kwargs":[1])",
                           R"("samplers":7)",
                           R"("samplers":["no"])",
                           R"("samplers":[7])",
                           R"("samplers":"q")",
                           R"("lora":7)",
                           R"("lora":[{"scale":1}])",
                           R"("lora":[{"id":"x"}])",
                           R"("lora":[{"id":4294967296}])",
                           R"("lora":[{"id":0,"scale":"x"}])",
                           R"("lora":[7])",
                           R"("messages":[])",
                           R"("messages":"x")",
                           R"("messages":null)",
                           R"("messages":[{"role":"king","content":"x"}])",
                           R"("messages":[{"role":7,"content":"x"}])",
                           R"("reasoning_format":5)",
                           R"("reasoning_format":"x")",
                           R"("reasoning_effort":5)",
                           R"("response_fields":[7])",
                           R"("response_fields":"x")",
                           R"("dry_sequence_breakers":[])",
                           R"("dry_sequence_breakers":"x")",
                           R"("dry_sequence_breakers":["a\u0000b"])",
                           R"("continue_final_message":"x")",
                           R"("chat_format":99)",
                           R"("model":7)",
                           R"("model":"a\u0000b")",
                           R"("preserved_tokens":[1])",
                           R"("chat_parser":"x")"});
    expect_taken(
        kChat,
        {R"("stop":"x")",
         R"("stop":["x","y"])",
         R"("stop":[])",
         R"("stop":null)",
         R"("stream_options":{"include_usage":true})",
         R"("stream_options":null)",
         R"("logit_bias":{"5":-100})",
         R"("logit_bias":{"hello":false})",
         R"("logit_bias":{})",
         R"("logit_bias":[[5,1.5],["x",false]])",
         R"("tool_choice":"auto")",
         R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}])",
         R"("tool_choice":null)",
         R"("tool_choice":{"type":"function","function":{"name":"f"}},"tools":[{"type":"function","function":{"name":"f"}}])",
         R"("chat_template_kwargs":{"enable_thinking":false})",
         R"("samplers":["top_k","top-p","TEMPERATURE","typ","dry"])",
         R"("samplers":"dkypmxt")",
         R"("samplers":[])",
         R"("lora":[])",
         R"("lora":[{"id":0,"scale":0.5}])",
         R"("reasoning_format":"auto")",
         R"("reasoning_format":null)",
         R"("reasoning_effort":"high")",
         R"("messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"x"}]},)"
         R"({"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"x"},{"role":"developer","content":"x"},)"
         R"({"role":"function","content":"x"},{"role":"document 1","content":"x"}])",
         R"("continue_final_message":true)",
         R"("continue_final_message":"content")",
         R"("model":"a/b:Q4_K_M")",
         R"("unknown":{"anything":[1]})",
         R"("user":"me")",
         R"("store":false)",
         R"("metadata":{})"});
    // what is checked on one route need not be a field of another
    expect_taken("/v1/messages", {R"("stop":7)", R"("tool_choice":{"type":"any"},"tools":[{"name":"f"}])",
                                  R"("stop_sequences":["x"])"});
    expect_refused("/v1/messages", {R"("tool_choice":"auto")", R"("stop_sequences":7)", R"("messages":[])"});
}

TEST(RequestFields, tokens_are_whole_numbers_of_31_bits) {
    for (const char* path : {"/completion", "/v1/completions"}) {
        expect_refused(
            path, {R"("prompt":[4294967297])", R"("prompt":[-1])", R"("prompt":[1,2.5])", R"("prompt":[1,"x",true])",
                   R"("prompt":[[4294967297]])", R"("prompt":[["x",null]])", R"("prompt":7)", R"("prompt":null)",
                   R"("prompt":{})", R"("prompt":[])", R"("prompt":{"prompt_string":[-1]})"});
        expect_taken(path, {R"("prompt":"x")", R"("prompt":[1,2])", R"("prompt":["a","b"])", R"("prompt":[1,"x",2])",
                            R"("prompt":[[1,2],"x",[3]])", R"("prompt":{"prompt_string":"x","multimodal_data":[]})",
                            R"("prompt":"")"});
    }
    expect_refused("/tokenize", {R"("content":7)", R"("content":null)", R"("content":[4294967297])", R"("content":{})",
                                 R"("add_special":1)", R"("with_pieces":"x")"});
    expect_taken("/tokenize", {R"("content":"x")", R"("content":["x",5])", R"("content":"x","add_special":true)"});
    expect_refused("/detokenize", {R"("tokens":"x")", R"("tokens":[4294967297])", R"("tokens":[-1])",
                                   R"("tokens":[1.0])", R"("tokens":["x"])", R"("tokens":null)"});
    expect_taken("/detokenize", {R"("tokens":[])", R"("tokens":[1,2,2147483647])"});
    expect_refused("/v1/embeddings", {R"("input":[4294967297])", R"("input":7)", R"("encoding_format":"x")",
                                      R"("input":[])", R"("input":null)"});
    expect_taken("/v1/embeddings", {R"("input":"x")", R"("input":["x","y"])", R"("input":[[1,2]])",
                                    R"("encoding_format":"base64")", R"("encoding_format":null)", R"("dimensions":5)"});
    expect_refused("/v1/rerank", {R"("top_n":-1)", R"("top_n":4294967297)", R"("documents":[7])"});
    expect_taken("/rerank", {R"("top_n":3,"documents":["x"],"query":"y")"});
    expect_refused("/v1/responses", {R"("input":7)", R"("input":[])", R"("input":[{"role":"king","content":"x"}])"});
    expect_taken(
        "/v1/responses",
        {R"("input":"x")",
         R"("input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}])"});
    // the message names the element
    EXPECT_NE(refusal("/completion", R"({"prompt":[1,4294967297]})").find("field 'prompt[1]'"), std::string::npos);
    EXPECT_NE(refusal("/completion", R"({"prompt":["x",[1,-1]]})").find("field 'prompt[1][1]'"), std::string::npos);
    EXPECT_NE(refusal("/lora-adapters", R"([{"id":-1}])").find("field 'body[0].id'"), std::string::npos);
    EXPECT_EQ(refusal("/lora-adapters", R"([{"id":0,"scale":1}])"), "");
}

TEST(RequestFields, lists_of_any_size_are_bounded) {
    const std::pair<std::string, std::string> cases[] = {
        {"stop", list_of(1025, "\"x\"")},
        {"stop", "[\"" + std::string(8192, 'x') + "\"]"},
        {"stop", "\"" + std::string(8192, 'x') + "\""},
        {"samplers", list_of(33, "\"dry\"")},
        {"samplers", "\"" + std::string(33, 'd') + "\""},
        {"dry_sequence_breakers", list_of(65, "\"x\"")},
        {"response_fields", list_of(257, "\"x\"")},
        {"grammar_triggers", list_of(65, R"({"type":1,"value":"x"})")},
        {"lora", list_of(1025, R"({"id":0})")},
        {"logit_bias", list_of(262'145, "[1,1]")},
        {"messages", list_of(8001, R"({"role":"user","content":"x"})")},
        {"preserved_tokens", list_of(4097, "\"x\"")},
    };
    for (const auto& [field, value] : cases) {
        const std::string message = refusal(kChat, "{\"" + field + "\":" + value + "}");
        EXPECT_NE(message.find("field '" + field), std::string::npos) << field;
        EXPECT_LT(message.size(), 300u);
    }
    EXPECT_EQ(refusal(kChat, "{\"stop\":" + list_of(1024, "\"x\"") + "}"), "");
    EXPECT_EQ(refusal(kChat, "{\"messages\":" + list_of(8000, R"({"role":"user","content":"x"})") + "}"), "");
    EXPECT_EQ(refusal(kChat, "{\"logit_bias\":" + list_of(50'000, "[1,1]") + "}"), "");
    EXPECT_NE(refusal("/completion", "{\"prompt\":" + list_of(4097, "\"x\"") + "}"), "");
}

// each of these ended the engine
TEST(RequestFields, triggers_that_end_or_block_the_engine_are_refused) {
    const auto trigger = [](const json& one) {
        return refusal("/completion", json{{"grammar_triggers", {one}}}.dump());
    };
    for (const json& one :
         {json{{"type", 99}, {"value", "("}}, json{{"type", -1}, {"value", "x"}}, json{{"value", "x"}},
          json{{"type", 1}}, json{{"type", 0}, {"value", "x"}},
          json{{"type", 0}, {"value", "x"}, {"token", 4294967296}},
          json{{"type", 2}, {"value", std::string(20'000, '(')}}, json{{"type", 2}, {"value", std::string(17, '(')}},
          json{{"type", 2}, {"value", "(a*)*b"}}, json{{"type", 2}, {"value", "(a|a)*b"}},
          json{{"type", 3}, {"value", "(x+x+)+y"}}, json{{"type", 2}, {"value", "a*b*c*d*e*f"}},
          json{{"type", 2}, {"value", "(a?a?)*b"}}, json{{"type", 2}, {"value", "(a)\\1"}},
          json{{"type", 2}, {"value", "(?=a)b"}}, json{{"type", 2}, {"value", "a{9999}"}},
          json{{"type", 2}, {"value", "a)"}}, json{{"type", 1}, {"value", std::string("a\0b", 3)}}, json(7)})
        EXPECT_TRUE(trigger(one).starts_with("field 'grammar_triggers[0]")) << one << trigger(one);
    for (const json& one :
         {json{{"type", 0}, {"value", "<tool>"}, {"token", 5}}, json{{"type", 1}, {"value", "(((((("}},
          json{{"type", 2}, {"value", "[\\s\\S]*?(<tool_call>|<function=)[\\s\\S]*"}},
          json{{"type", 3}, {"value", "(?:<think>[^<]*</think>\\s*)?(\\{)"}}, json{{"type", 2}, {"value", ""}}})
        EXPECT_EQ(trigger(one), "") << one;
    EXPECT_FALSE(trigger_pattern_fault("\\(\\[[^\\])]+"));
    EXPECT_TRUE(trigger_pattern_fault("(((a"));
}

// the engine believes these without looking: a token that ends the text in one of them ended the engine
TEST(RequestFields, what_the_engine_makes_itself_is_refused) {
    expect_refused("/completion", {R"("generation_prompt":"<|im_end|>")", R"("chat_parser":"{}")",
                                   R"("message_delimiters":[{"role":7}])", R"("message_delimiters":"x")"});
    expect_taken(kChat, {R"("generation_prompt":"x")"});  // it makes its own there
}

// the tokens that a grammar leaves may all be ruled out, and the engine then ends itself
TEST(RequestFields, bans_of_tokens_do_not_go_with_grammars) {
    const std::string ban = R"("logit_bias":[[5,1],[6,false]],)", object_ban = R"("logit_bias":{"6":false},)";
    for (const char* grammar :
         {R"("grammar":"root ::= \"a\"")", R"("json_schema":{"type":"integer"})",
          R"("response_format":{"type":"json_object"})", R"("tools":[{"type":"function","function":{"name":"f"}}])"})
        for (const std::string& bans : {ban, object_ban})
            EXPECT_TRUE(refusal(kChat, "{" + bans + grammar + "}").starts_with("field 'logit_bias'")) << grammar;
    for (const char* none :
         {R"("grammar":"")", R"("response_format":{"type":"text"})", R"("tools":[])", R"("temperature":1)"})
        EXPECT_EQ(refusal(kChat, "{" + ban + none + "}"), "") << none;
    EXPECT_EQ(refusal(kChat, R"({"logit_bias":{"6":-100},"grammar":"root ::= \"a\""})"), "");
    expect_refused(kChat, {R"("logit_bias":[[5,-3e38]])", R"("logit_bias":{"5":1000001})"});
}

TEST(RequestFields, texts_that_take_a_tokenizer_minutes_are_refused) {
    const std::string text(17u << 20, 'a');
    EXPECT_NE(refusal("/completion", "{\"prompt\":\"" + text + "\"}").find("16 MiB"), std::string::npos);
    EXPECT_NE(refusal("/tokenize", "{\"content\":\"" + text + "\"}").find("16 MiB"), std::string::npos);
    const std::string message =
        R"({"role":"user","content":[{"type":"text","text":")" + text.substr(0, 9u << 20) + "\"}]}";
    EXPECT_NE(refusal(kChat, "{\"messages\":[" + message + "," + message + "]}").find("16 MiB"), std::string::npos);
    EXPECT_EQ(refusal(kChat, "{\"messages\":[" + message + "]}"), "");
    // an image is no text
    const std::string image =
        R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,)" + text + "\"}}]}";
    EXPECT_EQ(refusal(kChat, "{\"messages\":[" + image + "]}"), "");
}

TEST(RequestFields, markers_of_special_tokens_are_bounded) {
    for (const std::string marker :
         {"<|im_start|>", "</s>", "<\xef\xbd\x9cUser", "[INST]", "\\u003c|im_end|>", "<start_of_turn>",
          "<\\u007cim_start|>", "<\\/s>", "\\u003C\\u002fs>", "<\\uFF5cUser", "\\u005bINST\\u005d", "\\\\<|x|>"}) {
        std::string text;
        for (int i = 0; i < 20'000; i++) text += marker + " a ";
        EXPECT_EQ(refusal("/completion", "{\"prompt\":\"" + text + "\"}"), "") << marker;
        EXPECT_NE(refusal("/completion", "{\"prompt\":\"" + text + marker + "\"}").find("at most 20000 markers"),
                  std::string::npos)
            << marker;
    }
    std::string page;
    for (int i = 0; i < 50'000; i++) page += "<div class='x'>a < b</div> [1] ";
    EXPECT_EQ(refusal("/completion", "{\"prompt\":\"" + page + "\"}"), "");
    // Go writes every '<' so; an escaped backslash is no escape of what follows
    std::string escaped;
    for (int i = 0; i < 50'000; i++) escaped += R"(\u003cdiv\u003e \\u003c|x <\\u007cx )";
    EXPECT_EQ(refusal("/completion", "{\"prompt\":\"" + escaped + "\"}"), "");
    for (const char* end : {"\\", "\\u", "\\u003", "<\\u00"}) EXPECT_TRUE(check_markers(end).ok());
}

TEST(RequestFields, names_are_found_behind_escapes_and_every_one_of_a_name_is_read) {
    EXPECT_NE(refusal(kChat, R"({"max_t\u006fkens":4294967297})"), "");
    EXPECT_NE(refusal(kChat, R"({"max_tokens":5,"max_tokens":4294967297})"), "");
    EXPECT_EQ(refusal(kChat, R"({"nested":{"max_tokens":4294967297},"list":[{"stop":7}]})"), "");
    EXPECT_EQ(refusal("/props", R"({"max_tokens":4294967297})"), "");
}

}  // namespace
}  // namespace onebit
