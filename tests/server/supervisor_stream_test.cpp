// Breaks when a client that leaves, a long prompt or an engine that dies is not noticed, or reaches another request.
#include "tests/server/supervisor_fixture.h"

namespace onebit::testing {
namespace {

// Each with streams that pass through the supervisor, and with streams that engines write to clients themselves.
class StreamTest : public DirectSupervisorTest, public ::testing::WithParamInterface<bool> {
protected:
    void SetUp() override {
        if (GetParam()) take_sockets();
    }
};
INSTANTIATE_TEST_SUITE_P(Way, StreamTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "direct" : "relayed"; });

// API10, API13
TEST_P(StreamTest, API10_API13_a_client_that_leaves_frees_its_slot_and_no_other) {
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
TEST_P(StreamTest, API10_leaving_before_the_first_byte_is_noticed_too) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/completion", R"({"prompt":"x"})")));
    ASSERT_TRUE(wait_until([&] { return engine().active == 1; }));
    raw.close();
    EXPECT_TRUE(wait_until([&] { return engine().noticed_closed == 1 && engine().requests == 0; }));
    expect_alive();
}

TEST_P(StreamTest, leaving_while_the_model_loads_is_noticed) {
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
TEST_P(StreamTest, API14_API15_a_long_prefill_has_head_and_pings) {
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
TEST_P(StreamTest, API14_a_silent_stream_is_pinged_between_events) {
    start({}, [](SupervisorParts& parts) { parts.times = {20s, 20ms}; });
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true,"events":2})")));
    ASSERT_TRUE(raw.read_until(": waiting\n\n", 2));
    engine().open_gate();
    ASSERT_TRUE(raw.read_until("[DONE]"));
}

// API18
TEST_P(StreamTest, API18_an_error_after_the_head_is_an_event) {
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
    EXPECT_NE(anthropic.text.find("event: error\ndata: {\"type\":\"error\",\"error\":{"), std::string::npos)
        << anthropic.text;
}

// API18
TEST_P(StreamTest, API18_an_error_before_the_first_byte_is_a_status) {
    start();
    expect_alive();
    engine().open_gate();
    expect_error(post("/v1/chat/completions", R"({"stream":true,"late":true,"reject":true})"), 400);
}

TEST_P(StreamTest, a_fault_of_the_client_is_one_as_a_status_and_as_an_event) {
    start({}, [](SupervisorParts& parts) { parts.times = {30ms, 20s}; });
    const std::string body = R"({"stream":true,"late":true,"fault":true})";
    RawClient late(port);
    ASSERT_TRUE(late.send(raw_post("/v1/chat/completions", body)));
    ASSERT_TRUE(late.read_until("\r\n\r\n"));
    engine().open_gate();
    ASSERT_TRUE(late.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(
        late.text.find("\"code\":400,\"message\":\"Failed to parse messages: x\",\"type\":\"invalid_request_error\""),
        std::string::npos)
        << late.text;
    expect_error(post("/v1/chat/completions", R"({"late":true,"fault":true})"), 400);
    auto metrics = client().Get("/metrics");
    EXPECT_NE(metrics->body.find("status=\"400\"} 2"), std::string::npos) << metrics->body;
}

// UX10
TEST_P(StreamTest, UX10_a_stream_whose_engine_dies_ends_with_an_error_event) {
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

TEST_P(StreamTest, requests_of_an_engine_that_ends_in_a_member_of_its_tandem_are_told_so) {
    start();
    RawClient events(port);
    ASSERT_TRUE(events.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true})")));
    ASSERT_TRUE(events.read_until("{\"n\":0}"));
    engine().member_failed = true;
    engine().die();
    ASSERT_TRUE(events.read_until("\r\n0\r\n\r\n"));
    EXPECT_NE(events.text.find("\"code\":\"member_failed\""), std::string::npos) << events.text;
    EXPECT_NE(events.text.find("\"type\":\"engine_failed\""), std::string::npos) << events.text;
}

TEST_P(StreamTest, the_end_of_the_server_is_told_to_every_request_in_flight) {
    start({}, [](SupervisorParts& parts) { parts.times = {30ms, 20s}; });
    const std::string waits = R"({"stream":true,"wait":true})";
    RawClient chat(port), anthropic(port), early(port), whole(port), plain(port), upload(port), head(port);
    ASSERT_TRUE(chat.send(raw_post("/v1/chat/completions", waits)));
    ASSERT_TRUE(anthropic.send(raw_post("/v1/messages", waits)));
    ASSERT_TRUE(early.send(raw_post("/v1/chat/completions", R"({"stream":true,"late":true})")));
    ASSERT_TRUE(whole.send(raw_post("/completion", "{}")));
    ASSERT_TRUE(plain.send(raw_post("/v1/chat/completions", R"({"plain":true,"wait":true})")));
    ASSERT_TRUE(upload.send("POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"));
    ASSERT_TRUE(head.send("POST /completion HTTP/1.1\r\nHost: local"));
    for (RawClient* one : {&chat, &anthropic, &plain}) ASSERT_TRUE(one->read_until("{\"n\":0}")) << one->text;
    ASSERT_TRUE(early.read_until("\r\n\r\n"));
    ASSERT_TRUE(wait_until([&] { return engine().active == 5; }));
    ASSERT_TRUE(wait_until([&] {
        return json::parse(client().Get("/onebit/ps")->body)["requests_in_flight"].get<int>() == 7;  // its own too
    }));
    supervisor->stop();

    const std::string error = R"({"error":{"code":503,"message":"the server is stopping and has ended this request",)"
                              R"("type":"unavailable_error"}})";
    for (RawClient* one : {&chat, &anthropic, &early, &whole, &plain, &upload, &head})
        EXPECT_TRUE(one->read_to_end()) << one->text;
    for (RawClient* one : {&chat, &anthropic, &early}) {
        const std::string form = one == &anthropic ? R"({"type":"error",)" + error.substr(1) : error;
        EXPECT_NE(one->text.find("data: " + form + "\n\n"), std::string::npos) << one->text;
        EXPECT_TRUE(one->text.ends_with("\r\n0\r\n\r\n")) << one->text;
        EXPECT_EQ(one->text.find("[DONE]"), std::string::npos) << one->text;
    }
    EXPECT_NE(anthropic.text.find("event: error\ndata: "), std::string::npos) << anthropic.text;
    for (RawClient* one : {&whole, &upload, &head}) {
        EXPECT_TRUE(one->text.starts_with("HTTP/1.1 503 ")) << one->text;
        EXPECT_TRUE(one->text.ends_with(error)) << one->text;
    }
    EXPECT_NE(whole.text.find("Retry-After: "), std::string::npos) << whole.text;
    // no clean end of a body that is not whole
    EXPECT_FALSE(plain.text.ends_with("\r\n0\r\n\r\n")) << plain.text;
}

TEST_P(StreamTest, a_client_that_does_not_read_does_not_keep_the_server_from_its_end) {
    start();
    RawClient deaf(port);
    ASSERT_TRUE(deaf.send(raw_post("/v1/chat/completions", R"({"stream":true,"events":100000000})")));
    ASSERT_TRUE(deaf.read_until("{\"n\":0}"));
    // nothing is read any more: all that lies between fills up
    int before = 0;
    ASSERT_TRUE(wait_until([&] {
        std::this_thread::sleep_for(100ms);
        return std::exchange(before, engine().sent_events.load()) == engine().sent_events;
    }));
    supervisor->stop();
    EXPECT_TRUE(deaf.read_to_end());
}

}  // namespace
}  // namespace onebit::testing
