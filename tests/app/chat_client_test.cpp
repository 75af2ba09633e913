// If this fails, `1bit run` shows a wrong answer, loses the end of a stream, or hides an engine's error.
#include "app/chat_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/unique_fd.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const OnText kIgnore = [](std::string_view, bool) { return true; };

TEST(EventReader, EventsInPiecesOfAnySize) {
    const std::string stream =
        ": ping\n\ndata: {\"a\":1}\n\ndata:two\r\n\r\nevent: x\ndata: l1\ndata: l2\n\ndata: [DONE]\n\n";
    for (size_t size = 1; size <= stream.size(); ++size) {
        EventReader reader;
        std::vector<std::string> events;
        for (size_t at = 0; at < stream.size(); at += size)
            for (std::string& event : reader.feed(std::string_view(stream).substr(at, size))) events.push_back(event);
        EXPECT_THAT(events, ElementsAre("{\"a\":1}", "two", "l1\nl2", "[DONE]")) << size;
    }
    EventReader reader;
    EXPECT_THAT(reader.feed(""), IsEmpty());
    EXPECT_THAT(reader.feed("data: unfinished\n"), IsEmpty());
    EXPECT_THAT(reader.feed("\n"), ElementsAre("unfinished"));
}

TEST(AddEvent, TextReasoningUsageAndTimings) {
    ChatAnswer answer;
    std::string shown;
    OnText show = [&](std::string_view text, bool reasoning) {
        shown += (reasoning ? "(" : "") + std::string(text) + (reasoning ? ")" : "");
        return true;
    };
    for (
        const char* data :
        {R"({"choices":[{"delta":{"role":"assistant","content":null}}]})",
         R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})", R"({"choices":[{"delta":{"content":"Par"}}]})",
         R"({"choices":[{"delta":{"content":"is"}}]})", R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
         R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"timings":{"prompt_ms":1.5,"predicted_ms":2.5}})",
         "[DONE]"})
        ASSERT_TRUE(add_event(data, answer, show)) << data;
    EXPECT_EQ(shown, "(hm)Paris");
    EXPECT_EQ(answer.text, "Paris");
    EXPECT_EQ(answer.reasoning, "hm");
    EXPECT_EQ(answer.finish_reason, "stop");
    EXPECT_EQ(answer.prompt_tokens, 9u);
    EXPECT_EQ(answer.cached_tokens, 4u);
    EXPECT_EQ(answer.generated_tokens, 2u);
    EXPECT_EQ(answer.prompt_ms, 1.5);
    EXPECT_EQ(answer.generated_ms, 2.5);
}

TEST(AddEvent, WhatIsNoEventIsAnErrorAndNeverACrash) {
    ChatAnswer answer;
    for (const char* data :
         {"", "x", "1", "[]", "\"a\"", "{\"choices\":[1]}", "{\"error\":{\"message\":\"m\",\"code\":500}}"})
        EXPECT_FALSE(add_event(data, answer, kIgnore).ok()) << data;
    for (const char* data : {"{}", "{\"choices\":{}}", "{\"choices\":[]}", "{\"choices\":[{\"delta\":5}]}",
                             "{\"usage\":7}", "{\"timings\":null}", "{\"choices\":[{\"delta\":{\"content\":5}}]}"})
        EXPECT_TRUE(add_event(data, answer, kIgnore).ok()) << data;
    EXPECT_EQ(answer.text, "");
}

// UX18, API17: the error has both numbers
TEST(EngineError, APromptThatDoesNotFitHasBothNumbers) {
    Error error = engine_error(
        400,
        R"({"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_prompt_tokens":5123,"n_ctx":4096}})");
    EXPECT_THAT(error.message(), AllOf(HasSubstr("5123"), HasSubstr("4096"), HasSubstr("--ctx-size")));
    EXPECT_EQ(exit_code(error.code), 1);
    EXPECT_THAT(engine_error(500, R"({"error":{"message":"broken"}})").message(), HasSubstr("broken"));
    EXPECT_THAT(engine_error(502, "<html>").message(), HasSubstr("502"));
    EXPECT_EQ(engine_error(503, "").code, ErrorCode::unavailable);
}

// API01
TEST(ChatBody, OnlyUtf8GoesOut) {
    ChatRequest request;
    request.messages = {{"system", "s"}, {"user", "What \"is\" Zürich?\n"}};
    request.temperature = 0.5;
    request.max_tokens = 3;
    request.seed = 42;
    nlohmann::json body = nlohmann::json::parse(*chat_body(request));
    EXPECT_EQ(body["messages"][1]["content"], "What \"is\" Zürich?\n");
    EXPECT_EQ(body["temperature"], 0.5);
    EXPECT_EQ(body["max_tokens"], 3);
    EXPECT_EQ(body["seed"], 42);
    EXPECT_EQ(body["stream"], true);
    request.messages[1].content = "\xc4\xe3";
    Result<std::string> wrong = chat_body(request);
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message(), HasSubstr("UTF-8"));
}

// A server on a Unix socket that reads a request and answers with the given bytes.
class OneAnswer {
public:
    explicit OneAnswer(std::string bytes, bool keep_open = false) {
        std::string name = "/tmp/chat-test-XXXXXX";
        folder_ = mkdtemp(name.data());
        path_ = folder_ / "s.sock";
        listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.native().copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_.get(), 4), 0);
        thread_ = std::thread([this, bytes = std::move(bytes), keep_open] {
            UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
            char piece[4096];
            if (::recv(client.get(), piece, sizeof piece, 0) <= 0) return;
            for (size_t at = 0; at < bytes.size();) {
                ssize_t sent = ::send(client.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
                if (sent <= 0) return;
                at += size_t(sent);
            }
            // until the client goes
            while (keep_open && ::recv(client.get(), piece, sizeof piece, 0) > 0) {
            }
        });
    }
    ~OneAnswer() {
        thread_.join();
        std::filesystem::remove_all(folder_);
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path folder_, path_;
    UniqueFd listener_;
    std::thread thread_;
};

const std::string kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    return size + text + "\r\n";
}

ChatRequest question() {
    ChatRequest request;
    request.messages = {{"user", "q"}};
    return request;
}

TEST(Chat, AWholeAnswer) {
    OneAnswer server(
        kStreamHead + chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Par\"}}]}\n\n") +
        chunk("data: {\"choices\":[{\"delta\":{\"content\":\"is\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n") +
        "0\r\n\r\n");
    std::atomic<bool> cancel{false};
    Result<ChatAnswer> answer = chat(server.path(), question(), kIgnore, cancel);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->text, "Paris");
    EXPECT_EQ(answer->finish_reason, "stop");
}

TEST(Chat, AnEngineThatDiesIsAnError) {
    for (const std::string& bytes : {std::string(), std::string("HTTP/1.1 200"), kStreamHead,
                                     kStreamHead + chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Par\"}}]}\n\n"),
                                     std::string("nonsense\r\n\r\n")}) {
        OneAnswer server(bytes);
        std::atomic<bool> cancel{false};
        Result<ChatAnswer> answer = chat(server.path(), question(), kIgnore, cancel);
        ASSERT_FALSE(answer) << bytes;
        EXPECT_EQ(answer.error().code, ErrorCode::unavailable) << bytes;
    }
    std::atomic<bool> cancel{false};
    EXPECT_EQ(chat("/nowhere/s.sock", question(), kIgnore, cancel).error().code, ErrorCode::unavailable);
}

TEST(Chat, ARefusalIsTheEnginesError) {
    std::string body = R"({"error":{"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}})";
    OneAnswer server("HTTP/1.1 400 Bad Request\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    std::atomic<bool> cancel{false};
    Result<ChatAnswer> answer = chat(server.path(), question(), kIgnore, cancel);
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message(), AllOf(HasSubstr("9 tokens"), HasSubstr("at most 8")));
}

TEST(Chat, CancelKeepsWhatCame) {
    OneAnswer server(kStreamHead + chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Par\"}}]}\n\n"), true);
    std::atomic<bool> cancel{false};
    Result<ChatAnswer> answer = chat(
        server.path(), question(),
        [&](std::string_view, bool) {
            cancel = true;
            return true;
        },
        cancel);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->text, "Par");
    EXPECT_EQ(answer->finish_reason, "cancelled");
}

TEST(Chat, CancelBeforeTheFirstByte) {
    OneAnswer server("", true);
    std::atomic<bool> cancel{false};
    std::thread later([&] { cancel = true; });
    Result<ChatAnswer> answer = chat(server.path(), question(), kIgnore, cancel);
    later.join();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->finish_reason, "cancelled");
}

TEST(Chat, AReaderThatGoesEndsIt) {
    OneAnswer server(kStreamHead + chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Par\"}}]}\n\n"), true);
    std::atomic<bool> cancel{false};
    Result<ChatAnswer> answer = chat(
        server.path(), question(), [](std::string_view, bool) { return false; }, cancel);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->finish_reason, "cancelled");
}

}  // namespace
}  // namespace onebit
