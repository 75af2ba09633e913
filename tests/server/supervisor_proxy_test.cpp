// Breaks when bytes between client and engine are lost, held back or mixed up.
#include "tests/server/supervisor_fixture.h"

#include <random>

namespace onebit::testing {
namespace {

TEST_F(SupervisorTest, passes_method_path_query_headers_and_body) {
    start();
    auto http = client();
    httplib::Headers headers = {
        {"X-Mine", "1"},     {"X-Conversation-Id", "c::m"},   {"Connection", "keep-alive, X-Hop"},
        {"X-Hop", "gone"},   {"Proxy-Authorization", "gone"}, {"Authorization", "Bearer gone"},
        {"Accept", "text/x"}};
    auto answer = http.Post("/v1/echo?a=1&b=%20x%2F", headers, "{\"x\":1}", "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->get_header_value("X-Engine"), "m");
    EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain");
    EXPECT_FALSE(answer->has_header("Access-Control-Allow-Origin"));
    EXPECT_TRUE(answer->body.starts_with("POST /v1/echo?a=1&b=%20x%2F\n")) << answer->body;
    EXPECT_TRUE(answer->body.ends_with("\n{\"x\":1}")) << answer->body;
    for (const char* kept :
         {"X-Mine: 1", "X-Conversation-Id: c::m", "Accept: text/x", "Content-Type: application/json"})
        EXPECT_NE(answer->body.find(kept), std::string::npos) << kept;
    EXPECT_EQ(answer->body.find("gone"), std::string::npos) << answer->body;
    for (const char* method : {"PUT", "PATCH", "DELETE", "GET"}) {
        httplib::Request request;
        request.method = method;
        request.path = "/v1/echo?m=" + std::string(method);
        if (std::string(method) != "GET" && std::string(method) != "DELETE") request.body = "{\"k\":2}";
        auto other = http.send(request);
        ASSERT_TRUE(other) << method;
        EXPECT_EQ(other->status, 200) << other->body;
        EXPECT_TRUE(other->body.starts_with(std::string(method) + " /v1/echo?m=")) << other->body;
    }
}

TEST_F(SupervisorTest, statuses_without_a_body) {
    start();
    expect_alive();
    auto http = client();
    auto head = http.Head("/large");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->get_header_value("Content-Length"), std::to_string(3u << 20));
    auto cached = http.Get("/cached");
    ASSERT_TRUE(cached);
    EXPECT_EQ(cached->status, 304);
    EXPECT_EQ(cached->get_header_value("ETag"), "\"x\"");
    auto nothing = http.Get("/nothing");
    ASSERT_TRUE(nothing);
    EXPECT_EQ(nothing->status, 204);
    auto failed = http.Post("/fail", "{}", "application/json");
    expect_error(failed, 500);
    auto large = client().Get("/large");
    ASSERT_TRUE(large);
    EXPECT_EQ(large->body, std::string(3u << 20, 'L'));
}

TEST_F(SupervisorTest, binary_and_multipart_bodies_stay_as_they_are) {
    start();
    std::mt19937 random(1);
    std::string bytes(5000000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    uint64_t sum = 1469598103934665603ull;
    for (unsigned char c : bytes) sum = (sum ^ c) * 1099511628211ull;
    std::string expected = std::to_string(bytes.size()) + " " + std::to_string(sum);
    auto answer = client().Post("/digest", bytes, "application/octet-stream");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, expected);
    // sent in chunks
    size_t at = 0;
    auto chunked = client().Post(
        "/digest",
        [&](size_t, httplib::DataSink& sink) {
            size_t step = std::min<size_t>(70000, bytes.size() - at);
            if (step == 0)
                sink.done();
            else
                sink.write(bytes.data() + at, step);
            at += step;
            return true;
        },
        "application/octet-stream");
    ASSERT_TRUE(chunked);
    EXPECT_EQ(chunked->body, expected);
    std::string form =
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nname=\"model\"\r\n\r\nno\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nother\r\n--B--\r\n";
    auto multipart = client().Post("/v1/echo", form, "multipart/form-data; boundary=B");
    ASSERT_TRUE(multipart);
    EXPECT_EQ(multipart->get_header_value("X-Engine"), "other") << multipart->body;
}

TEST_F(SupervisorTest, events_come_as_they_are_made) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/v1/chat/completions", R"({"stream":true,"events":3,"wait":true})")));
    ASSERT_TRUE(raw.read_until("{\"n\":0}"));
    EXPECT_NE(raw.text.find("HTTP/1.1 200"), std::string::npos);
    EXPECT_NE(raw.text.find("text/event-stream"), std::string::npos);
    EXPECT_EQ(raw.text.find("{\"n\":1}"), std::string::npos);
    engine().open_gate();
    ASSERT_TRUE(raw.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(raw.text.find("[DONE]"), std::string::npos);
    EXPECT_TRUE(wait_until([&] { return engine().requests == 0; }));
}

TEST_F(SupervisorTest, sixty_four_streams_at_once) {
    start();
    expect_alive();
    std::atomic<int> whole{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 64; i++)
        threads.emplace_back([&, i] {
            std::string text, expected;
            auto http = client();
            int events = 20 + i;
            auto answer = http.Post("/v1/chat/completions", {},
                                    "{\"stream\":true,\"events\":" + std::to_string(events) + ",\"delay_ms\":1}",
                                    "application/json", [&](const char* data, size_t size) {
                                        text.append(data, size);
                                        return true;
                                    });
            for (int n = 0; n < events; n++) expected += "data: {\"n\":" + std::to_string(n) + "}\n\n";
            expected += "data: [DONE]\n\n";
            if (answer && answer->status == 200 && text == expected) whole++;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(whole, 64);
    EXPECT_TRUE(wait_until([&] { return engine().active == 0 && engine().requests == 0; }));
}

TEST_F(SupervisorTest, pipelined_requests_are_answered_in_order) {
    start();
    RawClient raw(port);
    std::string many;
    for (int i = 0; i < 50; i++)
        many += raw_post("/v1/echo?i=" + std::to_string(i), "{\"i\":" + std::to_string(i) + "}");
    ASSERT_TRUE(raw.send(many));
    ASSERT_TRUE(raw.read_until("{\"i\":49}"));
    size_t at = 0;
    for (int i = 0; i < 50; i++) {
        at = raw.text.find("POST /v1/echo?i=" + std::to_string(i) + "\n", at);
        ASSERT_NE(at, std::string::npos) << i;
    }
}

}  // namespace
}  // namespace onebit::testing
