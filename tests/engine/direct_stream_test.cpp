// Breaks when streamed bytes reach no client, the wrong one, or come in another order or in halves.
#include "engine/direct_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace onebit {
namespace {

const std::string kHead =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& payload) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", payload.size());
    return size + payload + "\r\n";
}

struct Pair {
    Pair() {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
        near.reset(ends[0]);
        far.reset(ends[1]);
    }
    UniqueFd near, far;
};

// All that has come to a socket.
std::string received(const UniqueFd& fd) {
    std::string text;
    char piece[65536];
    for (ssize_t got; (got = ::recv(fd.get(), piece, sizeof piece, MSG_DONTWAIT)) > 0;)
        text.append(piece, static_cast<size_t>(got));
    return text;
}

bool at_end(const UniqueFd& fd) {
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

class DirectStreamTest : public ::testing::Test {
protected:
    void SetUp() override { install_direct_streams(table_.get()); }
    void TearDown() override {
        ::shutdown(engine.near.get(), SHUT_RDWR);
        install_direct_streams(nullptr);
    }
    bool send(const std::string& bytes) {
        return ::send(engine.near.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    }
    // What the supervisor does.
    void offer(int client, StreamOffer message) {
        iovec part{&message, sizeof message};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof client)] = {};
        msghdr whole{};
        whole.msg_iov = &part;
        whole.msg_iovlen = 1;
        if (client >= 0) {
            whole.msg_control = control;
            whole.msg_controllen = sizeof control;
            cmsghdr* header = CMSG_FIRSTHDR(&whole);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof client);
            std::memcpy(CMSG_DATA(header), &client, sizeof client);
        }
        ASSERT_EQ(::sendmsg(engine.far.get(), &whole, 0), static_cast<ssize_t>(sizeof message));
    }
    void offer() { offer(client.near.get(), {StreamOffer::kMagic, loan.slot, loan.generation}); }
    // Nobody but the stream has the client's socket from now on.
    void let_go() { client.near.reset(); }
    StreamSlot& slot() { return table_->slots[loan.slot]; }

    std::unique_ptr<StreamTable> table_ = std::make_unique<StreamTable>();
    Pair engine, client;  // near: the engine's and the supervisor's ends
    StreamLoan loan = lend_slot(*table_).value();
};

TEST_F(DirectStreamTest, the_engine_says_that_it_takes_sockets) { EXPECT_EQ(table_->taken_up, 1u); }

TEST_F(DirectStreamTest, without_an_offer_all_goes_over_the_connection) {
    const std::string end = "0\r\n";
    for (const std::string& bytes : {kHead, chunk("data: a\n\n"), chunk("data: b\n\n"), end, std::string("\r\n")})
        ASSERT_TRUE(send(bytes));
    EXPECT_EQ(received(engine.far), kHead + chunk("data: a\n\n") + chunk("data: b\n\n") + "0\r\n\r\n");
}

TEST_F(DirectStreamTest, chunks_after_the_offer_go_to_the_client_and_the_end_does_not) {
    ASSERT_TRUE(send(kHead));
    offer();
    let_go();
    ASSERT_TRUE(send(chunk("data: a\n\n")));
    ASSERT_TRUE(send(chunk("x")));
    ASSERT_TRUE(send(chunk("\n\n")));
    EXPECT_EQ(received(engine.far), kHead);
    EXPECT_EQ(received(client.far), chunk("data: a\n\n") + chunk("x") + chunk("\n\n"));
    EXPECT_EQ(slot().chunks, 3u);
    EXPECT_EQ(slot().payload, 12u);
    EXPECT_EQ(slot().framed, 12u + 3 * 5);
    EXPECT_EQ(slot().end, StreamSlot::kEventEnd);
    EXPECT_GT(slot().first.load(), 0);
    EXPECT_GE(slot().last.load(), slot().first.load());
    EXPECT_EQ(slot_state(*table_, loan), SlotState::idle);
    ASSERT_TRUE(send("0\r\n"));
    ASSERT_TRUE(send("\r\n"));
    EXPECT_EQ(received(engine.far), "0\r\n\r\n");
    EXPECT_TRUE(at_end(client.far)) << "its copy of the client's socket is still open";
}

TEST_F(DirectStreamTest, the_end_of_an_event_is_known_over_small_chunks) {
    ASSERT_TRUE(send(kHead));
    offer();
    for (const char* one : {"a", "\n"}) ASSERT_TRUE(send(chunk(one)));
    EXPECT_NE(slot().end, StreamSlot::kEventEnd);
    ASSERT_TRUE(send(chunk("\n")));
    EXPECT_EQ(slot().end, StreamSlot::kEventEnd);
    ASSERT_TRUE(send(chunk("\n\nb")));
    EXPECT_NE(slot().end, StreamSlot::kEventEnd);
}

TEST_F(DirectStreamTest, nothing_overtakes_what_the_supervisor_still_has) {
    ASSERT_TRUE(send(kHead));
    ASSERT_TRUE(send(chunk("one")));
    offer();
    ASSERT_TRUE(send(chunk("two")));
    slot().relayed = 3;  // the supervisor has written one of two
    ASSERT_TRUE(send(chunk("three")));
    EXPECT_EQ(received(client.far), "");
    EXPECT_EQ(received(engine.far), kHead + chunk("one") + chunk("two") + chunk("three"));
    slot().relayed = 11;
    ASSERT_TRUE(send(chunk("four")));
    EXPECT_EQ(received(client.far), chunk("four"));
    EXPECT_EQ(received(engine.far), "");
}

TEST_F(DirectStreamTest, what_is_no_chunked_event_stream_takes_no_offer) {
    for (const std::string& head :
         {std::string("HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 6\r\n\r\n")}) {
        ASSERT_TRUE(send(head));
        offer();
        ASSERT_TRUE(send(chunk("a")));
        EXPECT_EQ(received(engine.far), head + chunk("a"));
    }
    EXPECT_EQ(received(client.far), "");
}

TEST_F(DirectStreamTest, chunks_that_are_not_whole_stay_with_the_connection) {
    for (const std::string& bytes : {std::string("5\r\nab"), std::string("1\r\nab\r\n"), std::string("g\r\na\r\n"),
                                     std::string("\r\n"), std::string("1\na\r\n"), std::string("1\r\naxx"),
                                     std::string("ffffffffffffffffffff\r\na\r\n"), std::string("-1\r\na\r\n")}) {
        ASSERT_TRUE(send(kHead));
        offer();
        ASSERT_TRUE(send(bytes));
        ASSERT_TRUE(send(chunk("after")));
        EXPECT_EQ(received(engine.far), kHead + bytes + chunk("after"));
        char rest[64];
        while (::recv(engine.near.get(), rest, sizeof rest, MSG_DONTWAIT) > 0) {
        }
    }
    EXPECT_EQ(received(client.far), "");
}

TEST_F(DirectStreamTest, offers_that_are_not_right_change_nothing) {
    const StreamOffer good{StreamOffer::kMagic, loan.slot, loan.generation};
    StreamOffer other = good, old = good, beyond = good;
    other.slot++;
    old.generation--;
    beyond.slot = ~0u;
    ASSERT_TRUE(send(kHead));
    for (const StreamOffer& bad : {other, old, beyond}) {
        offer(client.near.get(), bad);
        ASSERT_TRUE(send(chunk("a")));
    }
    offer(-1, good);  // no descriptor
    ASSERT_TRUE(send(chunk("a")));
    EXPECT_EQ(received(client.far), "");
    let_go();
    EXPECT_TRUE(at_end(client.far)) << "a socket of a refused offer was kept";
    EXPECT_EQ(received(engine.far), kHead + chunk("a") + chunk("a") + chunk("a") + chunk("a"));
}

TEST_F(DirectStreamTest, what_another_kind_of_client_sends_is_left_to_the_server) {
    const std::string next = "GET / HTTP/1.1\r\n\r\n";
    ASSERT_TRUE(send(kHead));
    ASSERT_EQ(::send(engine.far.get(), next.data(), next.size(), 0), static_cast<ssize_t>(next.size()));
    ASSERT_TRUE(send(chunk("a")));
    EXPECT_EQ(received(engine.near), next);
}

TEST_F(DirectStreamTest, a_closed_slot_fails_the_send) {
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    ASSERT_EQ(close_slot(*table_, loan), SlotState::idle);
    let_go();
    errno = 0;
    EXPECT_FALSE(send(chunk("b")));
    EXPECT_EQ(errno, EPIPE);
    EXPECT_FALSE(send(chunk("c"))) << "it must not come back over the connection";
    EXPECT_EQ(received(client.far), chunk("a"));
    EXPECT_TRUE(at_end(client.far));
    EXPECT_EQ(received(engine.far), kHead);
    EXPECT_EQ(slot().client_failed, 0u);
}

TEST_F(DirectStreamTest, a_client_that_is_gone_fails_the_send_and_is_told) {
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    client.far.reset();
    EXPECT_FALSE(send(chunk("b")));
    EXPECT_EQ(slot().client_failed, 1u);
    EXPECT_EQ(slot_state(*table_, loan), SlotState::idle) << "nothing of the chunk was written";
    EXPECT_EQ(slot().chunks, 1u);
}

TEST_F(DirectStreamTest, a_shut_down_client_fails_the_send_although_the_socket_is_open) {
    ASSERT_TRUE(send(kHead));
    offer();
    ::shutdown(client.near.get(), SHUT_RDWR);  // as the server does when it ends all connections
    EXPECT_FALSE(send(chunk("a")));
    EXPECT_EQ(slot().client_failed, 1u);
}

TEST_F(DirectStreamTest, a_chunk_larger_than_the_sockets_memory_arrives_whole) {
    const std::string large(4 << 20, 'x');
    ASSERT_TRUE(send(kHead));
    offer();
    let_go();
    std::atomic<bool> sent{false};
    std::string text;
    std::thread reader([&] {
        char piece[65536];
        for (ssize_t got; (got = ::recv(client.far.get(), piece, sizeof piece, 0)) > 0;)
            text.append(piece, static_cast<size_t>(got));
    });
    sent = send(chunk(large)) && send(chunk("after")) && send("0\r\n");
    reader.join();
    EXPECT_TRUE(sent);
    EXPECT_EQ(text, chunk(large) + chunk("after"));
    EXPECT_EQ(slot().payload, large.size() + 5);
}

TEST_F(DirectStreamTest, a_supervisor_that_leaves_ends_the_wait_for_a_client_that_reads_nothing) {
    ASSERT_TRUE(send(kHead));
    offer();
    std::thread supervisor([&] {
        while (slot_state(*table_, loan) != SlotState::engine) std::this_thread::yield();
        engine.far.reset();
    });
    EXPECT_FALSE(send(chunk(std::string(4 << 20, 'x'))));
    supervisor.join();
    EXPECT_EQ(slot_state(*table_, loan), SlotState::broken);
    EXPECT_EQ(slot().client_failed, 0u);
    EXPECT_EQ(slot().chunks, 0u);
}

TEST_F(DirectStreamTest, the_engine_waits_while_the_supervisor_writes) {
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    ASSERT_TRUE(supervisor_begins(*table_, loan));
    std::atomic<bool> begun{false};
    std::thread supervisor([&] {
        while (!begun) std::this_thread::yield();
        const std::string ping = chunk(": waiting\n\n");
        EXPECT_EQ(::send(client.near.get(), ping.data(), ping.size(), 0), static_cast<ssize_t>(ping.size()));
        supervisor_ends(*table_, loan);
    });
    begun = true;
    EXPECT_TRUE(send(chunk("b")));
    supervisor.join();
    EXPECT_EQ(received(client.far), chunk("a") + chunk(": waiting\n\n") + chunk("b"));
}

TEST_F(DirectStreamTest, a_slot_given_back_in_the_middle_of_a_chunk_is_freed_by_the_engine) {
    ASSERT_TRUE(send(kHead));
    offer();
    std::thread supervisor([&] {
        while (slot_state(*table_, loan) != SlotState::engine) std::this_thread::yield();
        return_slot(*table_, loan);
        EXPECT_EQ(slot_state(*table_, loan), SlotState::abandoned);
        engine.far.reset();
    });
    EXPECT_FALSE(send(chunk(std::string(4 << 20, 'x'))));
    supervisor.join();
    EXPECT_EQ(slot_state(*table_, loan), SlotState::free);
}

// cpp-httplib asks so whether its peer is alive, llama.cpp each second
TEST_F(DirectStreamTest, an_unread_offer_does_not_hide_that_the_supervisor_left) {
    ASSERT_TRUE(send(kHead));
    offer();
    let_go();
    engine.far.reset();
    char byte = 1;
    EXPECT_EQ(::recv(engine.near.get(), &byte, 1, MSG_PEEK), 1) << "the offer was there";
    EXPECT_EQ(::recv(engine.near.get(), &byte, 1, MSG_PEEK), 0) << "and now the end is seen";
    EXPECT_FALSE(at_end(client.far));
    ::shutdown(engine.near.get(), SHUT_RDWR);
    EXPECT_TRUE(at_end(client.far));
}

TEST_F(DirectStreamTest, a_descriptor_number_that_comes_again_is_another_connection) {
    ASSERT_TRUE(send(kHead));
    offer();
    let_go();
    ASSERT_TRUE(send(chunk("a")));
    const int number = engine.near.get();
    ::shutdown(number, SHUT_RDWR);
    EXPECT_EQ(received(client.far), chunk("a"));
    EXPECT_TRUE(at_end(client.far));
    Pair other;
    ASSERT_EQ(::dup3(other.near.get(), number, O_CLOEXEC), number);
    ASSERT_TRUE(send(chunk("b")));
    EXPECT_EQ(received(other.far), chunk("b"));
    ::shutdown(number, SHUT_RDWR);
}

TEST_F(DirectStreamTest, a_later_answer_on_the_same_connection_starts_anew) {
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    let_go();
    ASSERT_TRUE(send(kHead));  // without an end before it
    EXPECT_EQ(received(client.far), chunk("a"));
    EXPECT_TRUE(at_end(client.far));
    ASSERT_TRUE(send(chunk("b")));
    EXPECT_EQ(received(engine.far), kHead + kHead + chunk("b"));
}

TEST_F(DirectStreamTest, another_thread_with_the_same_descriptor_is_not_redirected) {
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    std::thread([&] { EXPECT_TRUE(send(chunk("b"))); }).join();
    EXPECT_EQ(received(client.far), chunk("a"));
    EXPECT_EQ(received(engine.far), kHead + chunk("b"));
}

TEST_F(DirectStreamTest, a_thread_that_ends_lets_the_client_go) {
    std::thread([&] {
        ASSERT_TRUE(send(kHead));
        offer();
        ASSERT_TRUE(send(chunk("a")));
    }).join();
    let_go();
    EXPECT_EQ(received(client.far), chunk("a"));
    EXPECT_TRUE(at_end(client.far));
}

TEST_F(DirectStreamTest, nothing_is_looked_at_outside_an_engine) {
    install_direct_streams(nullptr);
    ASSERT_TRUE(send(kHead));
    offer();
    ASSERT_TRUE(send(chunk("a")));
    EXPECT_EQ(received(engine.far), kHead + chunk("a"));
    EXPECT_EQ(received(client.far), "");
}

TEST_F(DirectStreamTest, descriptors_that_are_none_fail_as_ever) {
    char byte = 0;
    for (int none : {-1, 1 << 20}) {
        EXPECT_EQ(::send(none, kHead.data(), kHead.size(), 0), -1);
        EXPECT_EQ(errno, EBADF);
        EXPECT_EQ(::recv(none, &byte, 1, MSG_PEEK), -1);
        EXPECT_EQ(errno, EBADF);
        EXPECT_EQ(::shutdown(none, SHUT_RDWR), -1);
        EXPECT_EQ(errno, EBADF);
    }
}

}  // namespace
}  // namespace onebit
