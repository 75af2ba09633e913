// Breaks when bytes between client and engine are lost, held back or mixed up, when one client's fault reaches another,
// or when a hostile request ends the server.
#include "server/supervisor/supervisor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/server/supervisor_testing.h"

namespace onebit {
namespace {

using namespace std::chrono_literals;
using namespace onebit::testing;
using nlohmann::json;

class SupervisorTest : public ::testing::Test {
protected:
    // The engines outlive their models, so that a test can look at them and let them go.
    void start(std::function<void(ServeConfig&)> change = {}, std::function<void(SupervisorParts&)> change_parts = {}) {
        ServerContext context;
        context.config.port = 0;
        context.config.keep_alive = KeepAlive{-1};
        if (change) change(context.config);
        context.reload = [this]() -> Result<ServeConfig> {
            if (bad_reload) return Error{ErrorCode::usage, "onebit.yaml", "a mapping", "a number", ""};
            return reloaded;
        };
        reloaded = context.config;
        SupervisorParts parts;
        parts.resolve = [](const std::string& name) -> Result<ModelTarget> {
            ModelTarget target;
            target.id = name.empty() ? "m" : name;
            if (name.starts_with("missing"))
                return Error{ErrorCode::not_found, "model '" + printable(name) + "'", "a model", "none", ""};
            target.settings.keep_alive = KeepAlive{-1};
            target.entry.id = target.id;
            target.entry.architecture = "llama";
            return target;
        };
        parts.make_engine = [this](const ModelTarget& target) -> Result<std::unique_ptr<EngineHandle>> {
            auto engine = std::make_unique<HttpEngine>(target.id);
            engine->state = first_state.load();
            std::lock_guard lock(mutex_);
            engines_[target.id] = engine.get();
            return std::unique_ptr<EngineHandle>(std::move(engine));
        };
        parts.times.early_head = 20s;
        parts.times.ping = 20s;
        if (change_parts) change_parts(parts);
        supervisor = std::make_unique<Supervisor>(context, parts);
        auto bound = supervisor->bind();
        ASSERT_TRUE(bound.ok()) << bound.error().message();
        port = *bound;
        ASSERT_TRUE(supervisor->start_models().ok());
        thread_ = std::thread([this] { supervisor->serve(); });
    }
    void TearDown() override {
        if (supervisor) supervisor->stop();
        if (thread_.joinable()) thread_.join();
    }
    httplib::Client client() {
        httplib::Client client("127.0.0.1", port);
        client.set_read_timeout(kPatience);
        client.set_keep_alive(true);
        client.set_path_encode(false);
        return client;
    }
    HttpEngine& engine(const std::string& id = "m") {
        wait_until([&] {
            std::lock_guard lock(mutex_);
            return engines_.count(id) > 0;
        });
        std::lock_guard lock(mutex_);
        return *engines_.at(id);
    }
    httplib::Result post(const std::string& path, const std::string& body) {
        return client().Post(path, body, "application/json");
    }
    void expect_alive() {
        auto answer = post("/v1/echo", "{}");
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200) << answer->body;
    }
    static void expect_error(const httplib::Result& answer, int status) {
        ASSERT_TRUE(answer) << httplib::to_string(answer.error());
        EXPECT_EQ(answer->status, status) << answer->body;
        json body = json::parse(answer->body, nullptr, false);
        ASSERT_TRUE(body.is_object()) << answer->body;
        EXPECT_EQ(body["error"]["code"], status);
        EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
        EXPECT_FALSE(body["error"]["type"].get<std::string>().empty());
    }

    std::unique_ptr<Supervisor> supervisor;
    int port = 0;
    std::atomic<EngineState> first_state{EngineState::ready};
    std::atomic<bool> bad_reload{false};
    ServeConfig reloaded;

private:
    std::thread thread_;
    std::mutex mutex_;
    std::map<std::string, HttpEngine*> engines_;
};

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

// API10, API13
TEST_F(SupervisorTest, API10_API13_a_client_that_leaves_frees_its_slot_and_no_other) {
    start();
    RawClient stays(port), leaves(port);
    std::string endless = raw_post("/v1/chat/completions", R"({"stream":true,"events":1000000,"delay_ms":2})");
    ASSERT_TRUE(stays.send(endless));
    ASSERT_TRUE(leaves.send(endless));
    ASSERT_TRUE(stays.read_until("{\"n\":3}"));
    ASSERT_TRUE(leaves.read_until("{\"n\":3}"));
    EXPECT_EQ(engine().active, 2);
    leaves.close();
    EXPECT_TRUE(wait_until([&] { return engine().active == 1; }));
    ASSERT_TRUE(stays.read_until("{\"n\":200}"));
    stays.close();
    EXPECT_TRUE(wait_until([&] { return engine().active == 0 && engine().requests == 0; }));
    auto metrics = client().Get("/metrics");
    ASSERT_TRUE(metrics);
    EXPECT_NE(metrics->body.find("status=\"499\"} 2"), std::string::npos) << metrics->body;
}

// API10
TEST_F(SupervisorTest, API10_leaving_before_the_first_byte_is_noticed_too) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/completion", R"({"prompt":"x"})")));
    ASSERT_TRUE(wait_until([&] { return engine().active == 1; }));
    raw.close();
    EXPECT_TRUE(wait_until([&] { return engine().noticed_closed == 1 && engine().requests == 0; }));
    expect_alive();
}

TEST_F(SupervisorTest, leaving_while_the_model_loads_is_noticed) {
    first_state = EngineState::starting;
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/completion", R"({"prompt":"x"})")));
    engine();
    raw.close();
    EXPECT_TRUE(wait_until([&] { return supervisor->quiet(); }));
    EXPECT_EQ(engine().served, 0);
}

// API14, API15
TEST_F(SupervisorTest, API14_API15_a_long_prefill_has_head_and_pings) {
    start({}, [](SupervisorParts& parts) { parts.times = {20ms, 20ms}; });
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/v1/chat/completions", R"({"stream":true,"late":true,"events":2})")));
    ASSERT_TRUE(raw.read_until(": waiting\n\n", 3));
    EXPECT_NE(raw.text.find("HTTP/1.1 200"), std::string::npos);
    engine().open_gate();
    ASSERT_TRUE(raw.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(raw.text.find("data: {\"n\":1}\n\n"), std::string::npos) << raw.text;
    EXPECT_NE(raw.text.find("data: [DONE]\n\n"), std::string::npos);
}

// API14: also in the middle of a stream
TEST_F(SupervisorTest, API14_a_silent_stream_is_pinged_between_events) {
    start({}, [](SupervisorParts& parts) { parts.times = {20s, 20ms}; });
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true,"events":2})")));
    ASSERT_TRUE(raw.read_until(": waiting\n\n", 2));
    engine().open_gate();
    ASSERT_TRUE(raw.read_until("[DONE]"));
}

// API18
TEST_F(SupervisorTest, API18_an_error_after_the_head_is_an_event) {
    start({}, [](SupervisorParts& parts) { parts.times = {30ms, 20s}; });
    const std::string body = R"({"stream":true,"late":true,"reject":true})";
    RawClient late(port);
    ASSERT_TRUE(late.send(raw_post("/v1/chat/completions", body)));
    ASSERT_TRUE(late.read_until("\r\n\r\n"));
    EXPECT_NE(late.text.find("HTTP/1.1 200"), std::string::npos);
    RawClient anthropic(port);
    ASSERT_TRUE(anthropic.send(raw_post("/v1/messages", body)));
    ASSERT_TRUE(anthropic.read_until("\r\n\r\n"));
    engine().open_gate();
    ASSERT_TRUE(late.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(late.text.find("data: {\"error\":{\"message\":\"too long\""), std::string::npos) << late.text;
    EXPECT_EQ(late.text.find("[DONE]"), std::string::npos);
    ASSERT_TRUE(anthropic.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(anthropic.text.find("event: error\ndata: {\"error\""), std::string::npos) << anthropic.text;
}

// API18
TEST_F(SupervisorTest, API18_an_error_before_the_first_byte_is_a_status) {
    start();
    expect_alive();
    engine().open_gate();
    expect_error(post("/v1/chat/completions", R"({"stream":true,"late":true,"reject":true})"), 400);
}

// UX10
TEST_F(SupervisorTest, UX10_a_stream_whose_engine_dies_ends_with_an_error_event) {
    start();
    RawClient events(port), plain(port);
    ASSERT_TRUE(events.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true})")));
    ASSERT_TRUE(plain.send(raw_post("/v1/chat/completions", R"({"plain":true,"wait":true})")));
    ASSERT_TRUE(events.read_until("{\"n\":0}"));
    ASSERT_TRUE(plain.read_until("{\"n\":0}"));
    engine().die();
    ASSERT_TRUE(events.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(events.text.find("data: {\"error\":"), std::string::npos) << events.text;
    EXPECT_NE(events.text.find("engine_failed"), std::string::npos);
    EXPECT_NE(events.text.find("signal 9"), std::string::npos);
    EXPECT_EQ(events.text.find("[DONE]"), std::string::npos);
    // no clean end of a body that is not whole
    ASSERT_TRUE(plain.read_to_end());
    EXPECT_FALSE(plain.text.ends_with("\r\n0\r\n\r\n")) << plain.text;
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
    expect_error(post("/v1/chat/completions", "{\"model\":\"missing\\u0007\\ud83e\\udd50\"}"), 404);
    EXPECT_EQ(engine().served, before);
    expect_alive();
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
    start([](ServeConfig& config) { config.read_timeout = std::chrono::seconds(1); });
    for (const std::string& bytes :
         {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
          std::string("\x16\x03\x01\x02\0\x01", 6),
          "GET /" + std::string(100000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
          "GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100000, 'a') + "\r\n\r\n",
          [] {
              std::string text = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
              for (int i = 0; i < 5000; i++) text += "X" + std::to_string(i) + ": y\r\n";
              return text + "\r\n";
          }(),
          std::string("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}"),
          std::string("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
          std::string("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n0\r\n\r\n"),
          std::string("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
          std::string("POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n"),
          std::string("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
          std::string("FOO /v1/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
          std::string("GET /a\x01"
                      "b HTTP/1.1\r\nHost: localhost\r\n\r\n")}) {
        RawClient raw(port);
        raw.send(bytes);
        ASSERT_TRUE(raw.read_to_end()) << bytes.substr(0, 80);
        if (!raw.text.empty()) {
            EXPECT_TRUE(raw.text.starts_with("HTTP/1.1 4")) << bytes.substr(0, 80) << "\n" << raw.text.substr(0, 300);
            size_t body = raw.text.find("\r\n\r\n");
            EXPECT_TRUE(json::parse(raw.text.substr(body + 4), nullptr, false).is_object()) << raw.text;
        }
    }
    expect_alive();
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

// API38, API39
TEST_F(SupervisorTest, API38_API39_keys_and_origins_over_http) {
    start([](ServeConfig& config) {
        config.api_keys = {"k"};
        config.cors_origins = {"https://good.example"};
    });
    auto http = client();
    EXPECT_EQ(http.Get("/health")->status, 200);
    EXPECT_EQ(http.Get("/v1/health")->status, 200);
    for (const char* path : {"/metrics", "/v1/models", "/onebit/ps", "/props"}) expect_error(client().Get(path), 401);
    expect_error(post("/onebit/unload", "{\"model\":\"m\"}"), 401);
    EXPECT_EQ(client().Get("/metrics", httplib::Headers{{"Authorization", "Bearer k"}})->status, 200);
    EXPECT_EQ(client().Get("/v1/models", httplib::Headers{{"X-Api-Key", "k"}})->status, 200);
    expect_error(client().Get("/health", httplib::Headers{{"Origin", "https://evil.example"}}), 403);
    auto evil = client().Options("/v1/chat/completions",
                                 {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}});
    EXPECT_EQ(evil->status, 403);
    EXPECT_FALSE(evil->has_header("Access-Control-Allow-Origin"));
    auto good = client().Options(
        "/v1/chat/completions",
        httplib::Headers{{"Origin", "https://good.example"}, {"Access-Control-Request-Headers", "x-a, authorization"}});
    EXPECT_EQ(good->status, 204);
    EXPECT_EQ(good->get_header_value("Access-Control-Allow-Origin"), "https://good.example");
    EXPECT_EQ(good->get_header_value("Access-Control-Allow-Headers"), "x-a, authorization");
    EXPECT_FALSE(good->has_header("Access-Control-Allow-Credentials"));
    auto real = client().Get("/health", httplib::Headers{{"Origin", "https://good.example"}});
    EXPECT_EQ(real->get_header_value("Access-Control-Allow-Origin"), "https://good.example");
    expect_error(client().Get("/health", httplib::Headers{{"Host", "evil.example"}}), 403);
}

TEST_F(SupervisorTest, health_tells_the_state) {
    first_state = EngineState::starting;
    start([](ServeConfig& config) { config.model = "m"; });
    engine().progress = 0.42;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->body.find("0.42") != std::string::npos; }));
    auto loading = client().Get("/health");
    EXPECT_EQ(loading->status, 503);
    EXPECT_EQ(loading->get_header_value("Retry-After"), "1");
    EXPECT_EQ(json::parse(loading->body)["status"], "loading");
    auto refused = post("/v1/chat/completions", "{\"model\":\"other\"}");
    expect_error(refused, 503);
    EXPECT_FALSE(refused->get_header_value("Retry-After").empty());
    engine().state = EngineState::ready;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"whatever\"}")->get_header_value("X-Engine"), "m");
    engine().state = EngineState::failed;
    auto failed = client().Get("/health");
    EXPECT_EQ(failed->status, 503);
    EXPECT_NE(failed->body.find("signal 9"), std::string::npos) << failed->body;
}

// UX02
TEST_F(SupervisorTest, UX02_looking_loads_nothing_on_demand) {
    start();
    for (const char* path : {"/health", "/v1/models", "/metrics", "/onebit/ps"}) {
        auto answer = client().Get(path);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200) << path;
    }
    EXPECT_EQ(json::parse(client().Get("/health")->body)["status"], "idle");
    expect_error(client().Get("/props"), 503);
    expect_error(client().Get("/no-such-thing"), 404);
    EXPECT_TRUE(supervisor->fleet().engines().empty());
    // the page that this server gave out wants to chat
    expect_error(client().Get("/props", httplib::Headers{{"Sec-Fetch-Site", "same-origin"}}), 503);
    ASSERT_TRUE(wait_until([&] { return client().Get("/props")->status == 200; }));
}

// UX07, API23, DEV27
TEST_F(SupervisorTest, UX07_API23_metrics_and_ps_name_models_and_measured_values) {
    start([](ServeConfig& config) { config.max_models = 2; });
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"a\"}")->get_header_value("X-Engine"), "a");
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"b\"}")->get_header_value("X-Engine"), "b");
    auto metrics = client().Get("/metrics");
    ASSERT_TRUE(metrics);
    for (const char* line : {"llamacpp:n{model=\"a\"} 7", "llamacpp:n{model=\"b\"} 7",
                             "onebit_requests_total{model=\"a\",status=\"200\"} 1"})
        EXPECT_NE(metrics->body.find(line), std::string::npos) << line << "\n" << metrics->body;
    json ps = json::parse(client().Get("/onebit/ps")->body);
    ASSERT_EQ(ps["engines"].size(), 2u);
    for (const json& row : ps["engines"]) {
        EXPECT_EQ(row["state"], "ready");
        EXPECT_EQ(row["context_per_slot"], 2048);
        EXPECT_EQ(row["slots"], 4);
        EXPECT_EQ(row["resident_bytes"], 4096);
        EXPECT_EQ(row["pid"], ::getpid());
        EXPECT_TRUE(row["keep_alive_left_seconds"].is_null());
    }
    EXPECT_NE(client().Get("/props?model=a")->body.find("\"name\":\"a\""), std::string::npos);
    EXPECT_NE(client().Get("/props?model=b")->body.find("\"name\":\"b\""), std::string::npos);
    json models = json::parse(client().Get("/v1/models")->body);
    EXPECT_EQ(models["object"], "list");
    EXPECT_EQ(models["data"].size(), 2u);
    EXPECT_EQ(models["data"][0]["status"]["value"], "loaded");
    EXPECT_EQ(models["models"].size(), 2u);
}

TEST_F(SupervisorTest, load_and_unload_by_hand) {
    start();
    EXPECT_EQ(post("/onebit/load", "{\"model\":\"a\"}")->status, 202);
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    expect_error(post("/onebit/unload", "{\"model\":\"zzz\"}"), 404);
    expect_error(post("/onebit/unload", "{}"), 400);
    expect_error(post("/onebit/nothing", "{}"), 404);
    expect_error(client().Get("/onebit/unload"), 405);
    EXPECT_EQ(post("/onebit/unload", "{\"model\":\"a\"}")->status, 200);
    EXPECT_TRUE(supervisor->fleet().engines().empty());
}

// UX06
TEST_F(SupervisorTest, UX06_reload_takes_a_good_file_and_keeps_the_old_on_a_bad_one) {
    start([](ServeConfig& config) { config.api_keys = {"old"}; });
    auto with = [&](const char* key) {
        return client().Get("/v1/models", httplib::Headers{{"X-Api-Key", key}})->status;
    };
    EXPECT_EQ(with("old"), 200);
    reloaded.api_keys = {"new"};
    auto done = client().Post("/onebit/reload", httplib::Headers{{"X-Api-Key", "old"}}, "", "application/json");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, 200) << done->body;
    EXPECT_EQ(with("old"), 401);
    EXPECT_EQ(with("new"), 200);
    bad_reload = true;
    expect_error(client().Post("/onebit/reload", httplib::Headers{{"X-Api-Key", "new"}}, "", "application/json"), 400);
    EXPECT_EQ(with("new"), 200);
}

TEST_F(SupervisorTest, draining_lets_streams_end_and_takes_no_new_ones) {
    start();
    RawClient running(port), idle(port);
    ASSERT_TRUE(running.send(raw_post("/v1/chat/completions", R"({"stream":true,"events":3,"wait":true})")));
    ASSERT_TRUE(running.read_until("{\"n\":0}"));
    ASSERT_TRUE(idle.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(idle.read_until("\"ok\""));
    supervisor->drain();
    EXPECT_TRUE(idle.read_to_end());
    expect_error(post("/v1/chat/completions", "{}"), 503);
    auto health = client().Get("/health");
    EXPECT_EQ(health->status, 503);
    EXPECT_FALSE(supervisor->quiet());
    engine().open_gate();
    ASSERT_TRUE(running.read_until("[DONE]"));
    EXPECT_TRUE(wait_until([&] { return supervisor->quiet(); }));
}

TEST_F(SupervisorTest, stopping_ends_running_streams_at_once) {
    start();
    RawClient running(port);
    ASSERT_TRUE(running.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true})")));
    ASSERT_TRUE(running.read_until("{\"n\":0}"));
    supervisor->stop();
    EXPECT_TRUE(running.read_to_end());
}

TEST_F(SupervisorTest, a_taken_port_names_its_owner) {
    start();
    HttpServer second;
    Result<uint16_t> bound = second.bind("127.0.0.1", static_cast<uint16_t>(port));
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, ErrorCode::conflict);
    EXPECT_NE(bound.error().message().find(std::to_string(port)), std::string::npos);
    EXPECT_NE(bound.error().message().find("pid " + std::to_string(::getpid())), std::string::npos)
        << bound.error().message();
    EXPECT_EQ(second.bind("no such host", 0).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace onebit
