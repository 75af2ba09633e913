// Breaks when a hostile or broken request reaches an engine, ends the server, or takes the room of others.
#include "tests/server/supervisor_fixture.h"

#include <sys/resource.h>

namespace onebit::testing {
namespace {

// API01, API02
TEST_F(SupervisorTest, API01_bad_bytes_are_a_400_and_never_reach_an_engine) {
    start();
    expect_alive();
    int before = engine().served;
    for (const char* bytes : {"\xc4\xe3", "\xff", "\xe2\x82", "\xc0\x80"}) {
        for (const char* path : {"/v1/chat/completions", "/completion", "/v1/embeddings"}) {
            auto answer = post(path, "{\"messages\":[{\"role\":\"user\",\"content\":\"" + std::string(bytes) + "\"}]}");
            expect_error(answer, 400);
            EXPECT_NE(answer->body.find("column"), std::string::npos) << answer->body;
            for (unsigned char c : answer->body) EXPECT_LT(c, 0x80);
        }
    }
    expect_error(post("/v1/chat/completions", ""), 400);
    expect_error(post("/v1/chat/completions", "[1]"), 400);
    expect_error(post("/v1/chat/completions", "{\"a\":"), 400);
    expect_error(post("/v1/chat/completions", "{\"model\":\"missing\\ud83e\\udd50\"}"), 404);
    EXPECT_EQ(engine().served, before);
    expect_alive();
}

// API06
TEST_F(SupervisorTest, API06_a_schema_that_makes_no_grammar_never_reaches_an_engine) {
    start();
    expect_alive();
    const int before = engine().served;
    const std::string schema = R"({"type":"object","properties":{"a":{"type":"string","pattern":"^a\\!$"}}})";
    for (const auto& [path, body] : {
             std::pair{"/v1/chat/completions",
                       R"({"response_format":{"type":"json_schema","json_schema":{"schema":)" + schema + "}}}"},
             std::pair{"/completion", R"({"json_schema":)" + schema + "}"},
             std::pair{"/v1/chat/completions",
                       R"({"stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":)" + schema +
                           "}}]}"},
             std::pair{"/v1/messages", R"({"tools":[{"name":"f","input_schema":)" + schema + "}]}"},
             std::pair{"/v1/responses", R"({"text":{"format":{"type":"json_schema","schema":)" + schema + "}}}"},
         }) {
        auto answer = post(path, body);
        expect_error(answer, 400);
        EXPECT_NE(answer->body.find("properties.a.pattern"), std::string::npos) << answer->body;
        EXPECT_NE(answer->body.find("the escape '\\\\!'"), std::string::npos) << answer->body;
    }
    EXPECT_EQ(engine().served, before);
    EXPECT_EQ(post("/v1/echo", R"({"json_schema":)" + schema + "}")->status, 200);
}

// API31
TEST_F(SupervisorTest, API31_what_the_engine_blames_on_itself_but_the_client_did_is_a_400) {
    start();
    auto says = [&](const std::string& message) { return post("/v1/embeddings", json{{"says", message}}.dump()); };
    auto large =
        says("input (700 tokens) is too large to process. increase the physical batch size (current batch size: 512)");
    expect_error(large, 400);
    EXPECT_EQ(json::parse(large->body)["error"]["n_ubatch"], 512);
    expect_error(says("[json.exception.type_error.302] type must be array, but is string"), 400);
    expect_error(says("Compute error."), 500);
    expect_error(says("std::bad_alloc"), 500);
    auto metrics = client().Get("/metrics");
    EXPECT_NE(metrics->body.find("status=\"400\"} 2"), std::string::npos) << metrics->body;
}

TEST_F(SupervisorTest, bodies_above_the_limit) {
    start([](ServeConfig& config) { config.max_request_bytes = 1000; });
    expect_error(post("/v1/echo", "{\"a\":\"" + std::string(2000, 'x') + "\"}"), 413);
    auto answer = post("/v1/echo", "{\"a\":\"" + std::string(2000, 'x') + "\"}");
    EXPECT_NE(answer->body.find("1000"), std::string::npos);
    EXPECT_NE(answer->body.find("2008"), std::string::npos);
    EXPECT_EQ(post("/v1/echo", "{\"a\":\"" + std::string(1000 - 8, 'x') + "\"}")->status, 200);
    expect_error(post("/v1/echo", "{\"a\":\"" + std::string(1001 - 8, 'x') + "\"}"), 413);
    RawClient chunked(port);
    ASSERT_TRUE(chunked.send("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" +
                             std::string(0x1000, 'x') + "\r\n"));
    ASSERT_TRUE(chunked.read_until("\r\n\r\n"));
    EXPECT_NE(chunked.text.find("HTTP/1.1 413"), std::string::npos) << chunked.text;
    RawClient huge(port);
    ASSERT_TRUE(
        huge.send("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n"));
    ASSERT_TRUE(huge.read_until("\r\n\r\n"));
    EXPECT_NE(huge.text.find("HTTP/1.1 4"), std::string::npos) << huge.text;
    expect_alive();
}

TEST_F(SupervisorTest, hostile_heads) {
    // only what cannot be judged before the time-out may wait for it
    start([](ServeConfig& config) { config.read_timeout = std::chrono::hours(1); });
    const std::string host = "Host: localhost\r\n", end = host + "\r\n", echo = "POST /v1/echo HTTP/1.1\r\n" + host;
    std::string many = "GET /health HTTP/1.1\r\n";
    for (int i = 0; i < 5000; i++) many += "X" + std::to_string(i) + ": y\r\n";
    const std::pair<std::string, int> heads[] = {
        {"\r\n\r\n", 400},
        {"GET\r\n\r\n", 400},
        {"GET / HTTP/9.9\r\n\r\n", 505},
        {std::string("\x16\x03\x01\x02\0\x01", 6), 400},
        {"GET /" + std::string(1 << 20, 'a') + " HTTP/1.1\r\n" + end, 414},
        {"GET /health HTTP/1.1\r\nX: " + std::string(1 << 20, 'a') + "\r\n" + end, 431},
        {many + end, 431},
        {echo + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", 400},
        {echo + "Content-Length: -1\r\n\r\n", 400},
        {echo + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {echo + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {echo + "Transfer-Encoding: gzip\r\n\r\n", 400},
        {echo + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {echo + end, 400},
        {"TRACE / HTTP/1.1\r\n" + end, 405},
        {"CONNECT localhost:80 HTTP/1.1\r\n" + end, 405},
        {"FOO /v1/echo HTTP/1.1\r\n" + end, 501},
        {"GET /a\x01"
         "b HTTP/1.1\r\n" +
             end,
         400},
    };
    for (const auto& [bytes, status] : heads) {
        RawClient raw(port);
        raw.send(bytes);
        ASSERT_TRUE(raw.read_to_end()) << bytes.substr(0, 80);
        EXPECT_TRUE(raw.text.starts_with("HTTP/1.1 " + std::to_string(status) + " ")) << bytes.substr(0, 80) << "\n"
                                                                                      << raw.text.substr(0, 300);
        const size_t body = raw.text.find("\r\n\r\n");
        ASSERT_NE(body, std::string::npos) << bytes.substr(0, 80);
        const json error = json::parse(raw.text.substr(body + 4), nullptr, false);
        ASSERT_TRUE(error.is_object()) << raw.text;
        EXPECT_EQ(error["error"]["code"], status);
    }
    expect_alive();
    // they are counted as other refusals are
    auto metrics = client().Get("/metrics");
    ASSERT_TRUE(metrics);
    for (const char* status : {"414", "431", "501", "505"})
        EXPECT_NE(metrics->body.find("status=\"" + std::string(status) + "\""), std::string::npos) << metrics->body;
}

TEST_F(SupervisorTest, a_target_that_names_its_host_is_served) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(
        raw.send("POST http://localhost/v1/echo?a=b HTTP/1.1\r\nHost: evil.example\r\nContent-Length: "
                 "2\r\n\r\n{}" +
                 raw_post("/v1/echo?second", "{\"n\":2}")));
    ASSERT_TRUE(raw.read_until("{\"n\":2}"));
    EXPECT_NE(raw.text.find("POST /v1/echo?a=b\n"), std::string::npos) << raw.text;
    EXPECT_NE(raw.text.find("POST /v1/echo?second\n"), std::string::npos) << raw.text;
    // the host of the target is the one that is judged
    RawClient rebound(port);
    ASSERT_TRUE(rebound.send("GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(rebound.read_to_end());
    EXPECT_TRUE(rebound.text.starts_with("HTTP/1.1 403")) << rebound.text;
}

TEST_F(SupervisorTest, slow_requests_end_at_the_read_timeout) {
    start([](ServeConfig& config) { config.read_timeout = std::chrono::seconds(1); });
    RawClient silent(port), head(port), body(port), dribble(port);
    ASSERT_TRUE(head.send("POST /v1/echo HTTP/1.1\r\nHost: lo"));
    ASSERT_TRUE(body.send("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"));
    std::atomic<bool> over{false};
    // a byte now and then must not extend the time for ever
    std::thread dribbler([&] {
        dribble.send("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
        while (!over && dribble.send(" ")) std::this_thread::sleep_for(20ms);
    });
    EXPECT_TRUE(silent.read_to_end());
    EXPECT_TRUE(head.read_to_end());
    EXPECT_TRUE(body.read_to_end());
    EXPECT_NE(body.text.find("HTTP/1.1 408"), std::string::npos) << body.text;
    EXPECT_TRUE(dribble.read_to_end());
    over = true;
    dribbler.join();
    expect_alive();
}

TEST_F(SupervisorTest, a_thousand_bad_requests_then_a_good_one) {
    start();
    expect_alive();
    const std::string bad[] = {"{", "\xff", "{\"messages\":", "[]", ""};
    std::atomic<int> at{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&] {
            for (int i = at++; i < 1000; i = at++) {
                auto answer = post("/v1/chat/completions", bad[i % 5]);
                if (answer && answer->status == 400) refused++;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(refused, 1000);
    expect_alive();
    EXPECT_TRUE(wait_until([&] { return supervisor->quiet(); }));
}

TEST_F(SupervisorTest, a_thousand_idle_connections_leave_room) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 4096) GTEST_SKIP() << "this user may open only " << limit.rlim_cur << " files";
    start();
    expect_alive();
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 1000; i++) {
        idle.push_back(std::make_unique<RawClient>(port));
        ASSERT_TRUE(idle.back()->connected()) << i;
        ASSERT_TRUE(idle.back()->send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    for (auto& one : idle) ASSERT_TRUE(one->read_until("\"status\":\"ok\""));
    expect_alive();
}

}  // namespace
}  // namespace onebit::testing
