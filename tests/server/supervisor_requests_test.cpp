// Breaks when a request that was rewritten does not reach the engine so, or an error not in the form of its API.
#include "tests/server/supervisor_fixture.h"

namespace onebit::testing {
namespace {

TEST_F(SupervisorTest, the_engine_gets_the_rewritten_body_and_its_length) {
    start();
    auto answer = post("/apply-template", R"({"messages":[{"role":"user","content":"x","name":null}],"stop":null})");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_TRUE(answer->body.ends_with("\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}")) << answer->body;
}

constexpr const char* kForced = R"({"messages":[{"role":"user","content":"x"}],"tool_choice":"required",)"
                                R"("tools":[{"type":"function","function":{"name":"f"}}]})";

TEST_F(SupervisorTest, a_call_that_is_required_of_a_model_without_tools_is_refused) {
    start();
    expect_alive();
    engine().has_no_tools = true;
    const int served = engine().served;
    for (int i = 0; i < 2; i++) {
        auto answer = post("/v1/chat/completions", kForced);
        expect_error(answer, 400);
        const std::string message = json::parse(answer->body)["error"]["message"];
        EXPECT_TRUE(message.starts_with("field 'tool_choice'")) << message;
        EXPECT_NE(message.find("model 'm' has no tools"), std::string::npos) << message;
    }
    EXPECT_EQ(engine().served, served);
    EXPECT_EQ(post("/apply-template", kForced)->status, 200);
}

TEST_F(SupervisorTest, a_call_goes_on_where_the_template_has_tools) {
    start();
    expect_alive();
    engine().has_tools = true;
    EXPECT_EQ(post("/v1/chat/completions", kForced)->status, 200);
}

TEST_F(SupervisorTest, a_call_goes_on_where_nothing_is_known_of_the_template) {
    start();
    EXPECT_EQ(post("/v1/chat/completions", kForced)->status, 200);
}

// Anthropic's clients look for the "type" of an error beside it
TEST_F(SupervisorTest, errors_of_messages_have_a_type_of_their_own) {
    start([](ServeConfig& config) { config.api_keys = {"k"}; });
    const auto error_of = [&](const std::string& path, const std::string& body, bool key = true) {
        auto http = client();
        auto answer =
            http.Post(path, key ? httplib::Headers{{"X-Api-Key", "k"}} : httplib::Headers{}, body, "application/json");
        EXPECT_TRUE(answer);
        return answer ? json::parse(answer->body) : json();
    };
    for (const char* path : {"/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens"}) {
        for (const json& error :
             {error_of(path, R"({"messages":7})"), error_of(path, "x"), error_of(path, "{}", false)}) {
            EXPECT_EQ(error["type"], "error") << path << error;
            EXPECT_TRUE(error["error"]["type"].is_string()) << error;
            EXPECT_TRUE(error["error"]["message"].is_string()) << error;
        }
    }
    EXPECT_EQ(error_of("/v1/messages", "{}", false)["error"]["type"], "authentication_error");
    EXPECT_EQ(error_of("/v1/messages", "x")["error"]["type"], "invalid_request_error");
    EXPECT_FALSE(error_of("/v1/chat/completions", R"({"messages":7})").contains("type"));
}

TEST_F(SupervisorTest, an_engines_option_is_said_as_ours) {
    start();
    auto answer = post(
        "/v1/embeddings",
        R"({"input":"x","status":501,"says":"This server does not support embeddings. Start it with `--embeddings`"})");
    expect_error(answer, 501);
    EXPECT_NE(answer->body.find("1bit serve MODEL -- --embeddings"), std::string::npos) << answer->body;
}

TEST_F(SupervisorTest, loose_patterns_let_a_schema_go_on) {
    const std::string body =
        R"({"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"string","pattern":"x"}}}]})";
    start([](ServeConfig& config) { config.loose_patterns = true; });
    auto answer = post("/apply-template", body);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_TRUE(answer->body.ends_with(body)) << answer->body;
    reloaded.loose_patterns = false;
    ASSERT_TRUE(supervisor->reload().ok());
    expect_error(post("/apply-template", body), 400);
}

}  // namespace
}  // namespace onebit::testing
