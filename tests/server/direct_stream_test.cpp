// Breaks when a stream that the engine writes to the client itself differs from one that the supervisor passes on.
#include <set>

#include "tests/server/supervisor_fixture.h"

namespace onebit::testing {
namespace {

constexpr const char* kChat = "/v1/chat/completions";
const std::string kLast = "data: [DONE]\n\n\r\n0\r\n\r\n";

std::string events(int count, const std::string& more = "") {
    return "{\"stream\":true,\"events\":" + std::to_string(count) + more + "}";
}

class DirectStreamTest : public DirectSupervisorTest {
protected:
    void SetUp() override { take_sockets(); }
    bool all_slots_free() const {
        for (const StreamSlot& slot : table->slots)
            if ((slot.word & 7) != 0) return false;
        return true;
    }
    // The payload of an answer's chunks.
    static std::string payload(const std::string& answer) {
        std::string text;
        size_t at = answer.find("\r\n\r\n") + 4;
        for (;;) {
            const size_t size = std::strtoul(answer.c_str() + at, nullptr, 16);
            at = answer.find("\r\n", at) + 2;
            if (size == 0) return text;
            text += answer.substr(at, size);
            at += size + 2;
        }
    }
};

TEST_F(DirectStreamTest, the_answer_is_the_one_that_the_supervisor_would_pass_on) {
    start();
    const std::string body = events(200);
    RawClient direct(port);
    ASSERT_TRUE(direct.send(raw_post(kChat, body)));
    ASSERT_TRUE(direct.read_until(kLast));
    table->taken_up = 0;
    RawClient relayed(port);
    ASSERT_TRUE(relayed.send(raw_post(kChat, body)));
    ASSERT_TRUE(relayed.read_until(kLast));
    EXPECT_EQ(payload(direct.text), payload(relayed.text));
    EXPECT_EQ(direct.text.substr(0, direct.text.find("\r\n\r\n")),
              relayed.text.substr(0, relayed.text.find("\r\n\r\n")));
}

TEST_F(DirectStreamTest, events_do_not_pass_the_supervisor_and_are_counted_all_the_same) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post(kChat, events(50, ",\"wait\":true"))));
    ASSERT_TRUE(raw.read_until("{\"n\":0}"));
    // it may have passed the supervisor, before the engine had the socket; nothing overtakes it
    const std::string first = "data: {\"n\":0}\n\n";
    ASSERT_TRUE(wait_until([&] {
        for (const StreamSlot& slot : table->slots)
            if (slot.relayed + slot.payload == first.size()) return true;
        return false;
    }));
    engine().open_gate();
    ASSERT_TRUE(raw.read_until(kLast));
    const std::string text = payload(raw.text);
    ASSERT_TRUE(wait_until([&] { return all_slots_free(); }));
    ASSERT_TRUE(wait_until([&] { return metric("onebit_sent_bytes_total") == static_cast<double>(text.size()); }))
        << metric("onebit_sent_bytes_total") << " of " << text.size();
    EXPECT_GE(metric("onebit_sent_directly_bytes_total"), static_cast<double>(text.size() - first.size()));
    EXPECT_EQ(metric("onebit_requests_total", "model=\"m\",status=\"200\""), 1);
    EXPECT_EQ(metric("onebit_first_byte_seconds_count"), 1);
}

TEST_F(DirectStreamTest, a_kept_connection_serves_further_requests_also_pipelined_ones) {
    start();
    RawClient raw(port);
    for (int round = 1; round <= 3; round++) {
        ASSERT_TRUE(raw.send(raw_post(kChat, events(20))));
        ASSERT_TRUE(raw.read_until(kLast, static_cast<size_t>(round)));
    }
    ASSERT_TRUE(raw.send(raw_post(kChat, events(5)) + raw_post("/v1/echo", "{\"x\":1}") + raw_post(kChat, events(30))));
    ASSERT_TRUE(raw.read_until(kLast, 5));
    const size_t echo = raw.text.find("{\"x\":1}");
    ASSERT_NE(echo, std::string::npos);
    EXPECT_LT(echo, raw.text.rfind("{\"n\":0}"));
    EXPECT_GT(echo, raw.text.find("HTTP/1.1 200", raw.text.find(kLast)));
    EXPECT_TRUE(raw.text.ends_with(kLast));
}

TEST_F(DirectStreamTest, a_client_of_http_1_0_has_its_stream_through_the_supervisor) {
    start();
    RawClient raw(port);
    std::string request = raw_post(kChat, events(10));
    request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
    ASSERT_TRUE(raw.send(request));
    ASSERT_TRUE(raw.read_until("[DONE]\n\n"));
    EXPECT_EQ(raw.text.find("chunked"), std::string::npos) << raw.text;
    EXPECT_NE(raw.text.find("\r\n\r\ndata: "), std::string::npos) << raw.text;
    EXPECT_TRUE(raw.text.ends_with("[DONE]\n\n")) << raw.text;
    EXPECT_TRUE(raw.read_to_end()) << "the end of the body is that of the connection";
    ASSERT_TRUE(wait_until([&] { return metric("onebit_sent_bytes_total") > 0; }));
    EXPECT_EQ(metric("onebit_sent_directly_bytes_total"), 0);
}

TEST_F(DirectStreamTest, more_streams_than_slots_are_all_served) {
    start();
    // other streams have all but four
    std::vector<StreamLoan> others;
    while (others.size() < StreamTable::kSlots - 4) others.push_back(lend_slot(*table).value());
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 12; i++) {
        clients.push_back(std::make_unique<RawClient>(port));
        ASSERT_TRUE(clients.back()->send(raw_post(kChat, events(20, ",\"wait\":true"))));
    }
    for (auto& client : clients) ASSERT_TRUE(client->read_until("{\"n\":0}")) << client->text;
    EXPECT_EQ(engine().active, 12);
    engine().open_gate();
    std::set<std::string> texts;
    for (auto& client : clients) {
        ASSERT_TRUE(client->read_until(kLast)) << client->text;
        texts.insert(payload(client->text));
    }
    EXPECT_EQ(texts.size(), 1u);
    for (const StreamLoan& other : others) return_slot(*table, other);
    EXPECT_TRUE(wait_until([&] { return all_slots_free(); }));
    EXPECT_GT(metric("onebit_sent_directly_bytes_total"), 0);
    EXPECT_LT(metric("onebit_sent_directly_bytes_total"), metric("onebit_sent_bytes_total") / 2);
}

TEST_F(DirectStreamTest, a_client_that_reads_nothing_for_long_loses_nothing) {
    start();
    RawClient slow(port), other(port);
    constexpr int kEvents = 400000;
    ASSERT_TRUE(slow.send(raw_post(kChat, events(kEvents))));
    ASSERT_TRUE(slow.read_until("{\"n\":0}"));
    int before = 0;
    ASSERT_TRUE(wait_until([&] {
        std::this_thread::sleep_for(100ms);
        return std::exchange(before, engine().sent_events.load()) == engine().sent_events;
    }));
    ASSERT_LT(before, kEvents) << "the sockets hold all of it";
    ASSERT_TRUE(other.send(raw_post(kChat, events(10))));
    ASSERT_TRUE(other.read_until(kLast));
    ASSERT_TRUE(slow.read_until(kLast));
    const std::string text = payload(slow.text);
    size_t at = 0;
    for (int i = 0; i < kEvents; i++) {
        const std::string event = "data: {\"n\":" + std::to_string(i) + "}\n\n";
        ASSERT_EQ(text.compare(at, event.size(), event), 0) << i;
        at += event.size();
    }
}

TEST_F(DirectStreamTest, pings_stand_between_events_and_only_in_silence) {
    start({}, [](SupervisorParts& parts) { parts.times = {20s, 20ms}; });
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post(kChat, events(30, ",\"delay_ms\":45"))));
    ASSERT_TRUE(raw.read_until(kLast));
    std::string text = payload(raw.text);
    const std::string ping = ": waiting\n\n";
    size_t pings = 0;
    for (size_t at; (at = text.find(ping)) != std::string::npos; pings++) {
        ASSERT_TRUE(at == 0 || text.substr(at - 2, 2) == "\n\n") << text;
        text.erase(at, ping.size());
    }
    EXPECT_GT(pings, 0u);
    std::string expected;
    for (int i = 0; i < 30; i++) expected += "data: {\"n\":" + std::to_string(i) + "}\n\n";
    EXPECT_EQ(text, expected + "data: [DONE]\n\n");
}

TEST_F(DirectStreamTest, a_client_that_leaves_is_no_failed_engine) {
    start();
    for (int round = 0; round < 20; round++) {
        RawClient raw(port);
        ASSERT_TRUE(raw.send(raw_post(kChat, events(1000000))));
        ASSERT_TRUE(raw.read_until("{\"n\":9}"));
        raw.close();
    }
    ASSERT_TRUE(wait_until([&] { return supervisor->quiet() && engine().active == 0 && all_slots_free(); }));
    EXPECT_EQ(metric("onebit_requests_total", "model=\"m\",status=\"499\""), 20);
    expect_alive();
}

TEST_F(DirectStreamTest, a_client_that_sends_no_more_counts_as_gone_as_ever) {
    start();
    RawClient raw(port);
    ASSERT_TRUE(raw.send(raw_post(kChat, events(1000000, ",\"delay_ms\":1"))));
    ASSERT_TRUE(raw.read_until("{\"n\":3}"));
    raw.end_sending();
    EXPECT_TRUE(raw.read_to_end());
    EXPECT_TRUE(wait_until([&] { return engine().active == 0 && all_slots_free(); }));
}

}  // namespace
}  // namespace onebit::testing
