// Breaks when an engine's 500 for a bad request reaches the client as a server's fault, or a real fault as the
// client's.
#include "server/supervisor/client_fault.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace onebit {
namespace {

using nlohmann::json;

std::string engine_error(const std::string& message) {
    return json{{"error", {{"code", 500}, {"message", message}, {"type", "server_error"}}}}.dump();
}

// API31
TEST(ClientFault, API31_an_input_above_the_batch_names_both_numbers) {
    auto fault = client_fault("/v1/embeddings", engine_error("input (700 tokens) is too large to process. increase the "
                                                             "physical batch size (current batch size: 512)"));
    ASSERT_TRUE(fault);
    json error = json::parse(*fault)["error"];
    EXPECT_EQ(error["code"], 400);
    EXPECT_EQ(error["type"], "exceed_context_size_error");
    EXPECT_EQ(error["n_prompt_tokens"], 700);
    EXPECT_EQ(error["n_ubatch"], 512);
    EXPECT_NE(error["message"].get<std::string>().find("at most 512 tokens"), std::string::npos);
    EXPECT_NE(error["message"].get<std::string>().find("found 700"), std::string::npos);
}

TEST(ClientFault, messages_that_only_a_request_leads_to) {
    for (const char* message : {
             "[json.exception.type_error.302] type must be string, but is number",
             "[json.exception.type_error.304] cannot use at() with number",
             "[json.exception.out_of_range.403] key 'name' not found",
             "\"prompt\" elements must be a string, a list of tokens, a JSON object containing a prompt string, or a "
             "list",
             "\"prompt\" must not be empty",
             "'messages' is required",
             "Failed to parse messages: Missing 'role' in message: {}",
             "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
             "Cannot use both json_schema and grammar",
             "JSON schema error at #/properties/b: schema must be an object",
         }) {
        auto fault = client_fault("/v1/completions", engine_error(message));
        ASSERT_TRUE(fault) << message;
        json error = json::parse(*fault)["error"];
        EXPECT_EQ(error["code"], 400);
        EXPECT_EQ(error["type"], "invalid_request_error");
        EXPECT_EQ(error["message"], message);
    }
    auto raised =
        client_fault("/v1/chat/completions",
                     engine_error("\n------------\nWhile executing CallExpression at line 3\n...\nError: Jinja "
                                  "Exception: System message must be at the beginning."));
    ASSERT_TRUE(raised);
    EXPECT_EQ(json::parse(*raised)["error"]["message"], "chat template: System message must be at the beginning.");
}

TEST(ClientFault, what_repeats_the_request_is_cut) {
    auto tools =
        client_fault("/v1/chat/completions",
                     engine_error("Failed to parse tools: Expected 'tools' to be an array, got \"x\"; tools = \"x\""));
    ASSERT_TRUE(tools);
    EXPECT_EQ(json::parse(*tools)["error"]["message"],
              "Failed to parse tools: Expected 'tools' to be an array, got \"x\"");
    auto long_one =
        client_fault("/v1/chat/completions", engine_error("Failed to parse messages: " + std::string(100000, 'x')));
    ASSERT_TRUE(long_one);
    EXPECT_LT(long_one->size(), 1000u);
    // cut inside a character
    auto wide = client_fault("/v1/chat/completions", engine_error("Failed to parse messages: " + [] {
                                 std::string text;
                                 for (int i = 0; i < 1000; i++) text += "é";
                                 return text;
                             }()));
    ASSERT_TRUE(wide);
    EXPECT_TRUE(json::parse(*wide, nullptr, false).is_object());
}

TEST(ClientFault, everything_else_stays) {
    for (const char* message :
         {"", "std::bad_alloc", "Compute error.", "failed to process speculative batch", "got exception: x",
          "[json.exception.type_error.316] invalid UTF-8 byte at index 0", "[json.exception.parse_error.101] x",
          "input (700 tokens) is too large to process. increase the physical batch size (current batch size: 512",
          "input (x tokens) is too large to process. increase the physical batch size (current batch size: 512)",
          "input (99999999999999999999 tokens) is too large to process. increase the physical batch size (current "
          "batch size: 512)",
          "vector::_M_range_check: __n (which is 18446744073709551615) >= this->size() (which is 4096)"})
        EXPECT_FALSE(client_fault("/v1/chat/completions", engine_error(message))) << message;
    for (const char* body : {"", "x", "[]", "{}", R"({"error":7})", R"({"error":{}})", R"({"error":{"message":7}})"})
        EXPECT_FALSE(client_fault("/v1/chat/completions", body)) << body;
    EXPECT_TRUE(client_fault("/detokenize", engine_error("vector::_M_range_check: __n (which is 18446744073709551615) "
                                                         ">= this->size() (which is 4096)")));
}

TEST(ClientFault, a_route_that_is_not_served_names_our_way_to_start_it) {
    std::string body = engine_error("This server does not support embeddings. Start it with `--embeddings`");
    say_our_option(body);
    const std::string message = json::parse(body)["error"]["message"];
    EXPECT_NE(message.find("1bit serve MODEL -- --embeddings --pooling mean"), std::string::npos) << message;
    EXPECT_EQ(json::parse(body)["error"]["code"], 500);
    body = engine_error("This server does not support reranking. Start it with `--reranking`");
    say_our_option(body);
    EXPECT_NE(body.find("1bit serve MODEL -- --reranking, or"), std::string::npos) << body;
    body = engine_error("Pooling type 'none' is not OAI compatible. Please use a different pooling type");
    say_our_option(body);
    EXPECT_NE(body.find("1bit serve MODEL -- --embeddings --pooling mean"), std::string::npos) << body;
    for (const std::string other : {"Infill is not supported by this model: x", "Start it with `", ""}) {
        std::string same = engine_error(other);
        say_our_option(same);
        EXPECT_EQ(json::parse(same)["error"]["message"].get<std::string>().find(other.substr(0, 6)), 0u) << same;
    }
    for (const char* odd : {"", "x", "[]", "{}", R"({"error":7})", R"({"error":{"message":7}})"}) {
        std::string same = odd;
        say_our_option(same);
        EXPECT_EQ(same, odd);
    }
}

}  // namespace
}  // namespace onebit
