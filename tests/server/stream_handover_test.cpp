// Breaks when the supervisor writes into a chunk of the engine's, or cannot tell a client why its engine is gone.
#include "server/supervisor/stream_handover.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/server/supervisor_testing.h"

namespace onebit::testing {
namespace {

// A TCP connection to a client, an engine that listens on a Unix socket and takes what comes.
class StreamHandoverTest : public ::testing::Test {
protected:
    void SetUp() override {
        UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        ASSERT_EQ(::listen(listener.get(), 1), 0);
        ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
        client = std::make_unique<RawClient>(ntohs(address.sin_port));
        ASSERT_TRUE(client->connected());
        socket.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ASSERT_TRUE(socket);

        path = folder.path() / "e.sock";
        engine.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        path.native().copy(name.sun_path, sizeof name.sun_path - 1);
        ASSERT_EQ(::bind(engine.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
        ASSERT_EQ(::listen(engine.get(), 1), 0);
        ASSERT_EQ(exchange.send(path, "GET", ""), EngineIo::ok);
        to_client("HTTP head");
    }
    void to_client(const std::string& bytes) {
        ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }
    // What an engine does for one chunk, as far as it gets.
    void engine_writes(const std::string& payload, size_t bytes, bool counts) {
        char digits[16];
        std::snprintf(digits, sizeof digits, "%zx\r\n", payload.size());
        const std::string chunk = digits + payload + "\r\n";
        bytes = std::min(bytes, chunk.size());
        StreamSlot& slot = table->slots[loan.slot];
        ASSERT_EQ(engine_begins(*table, loan), EngineTurn::mine);
        slot.writing_end = StreamSlot::end_of(payload[payload.size() - 2], payload.back());
        slot.writing = static_cast<uint32_t>(chunk.size());
        to_client(chunk.substr(0, bytes));
        if (!counts) return;
        slot.chunks += 1;
        slot.payload += payload.size();
        slot.end = slot.writing_end.load();
        slot.framed += chunk.size();
        engine_ends(*table, loan, true);
    }
    void learn_loan() {
        for (uint32_t i = 0; i < StreamTable::kSlots; i++)
            if (is_lent(*table, {i, 1})) loan = {i, 1};
    }

    TempFolder folder;
    std::filesystem::path path;
    std::unique_ptr<RawClient> client;
    UniqueFd socket, engine;
    EngineExchange exchange;
    std::shared_ptr<StreamTable> table = std::make_shared<StreamTable>();
    StreamLoan loan;
    static constexpr size_t kAll = ~size_t{0};
};

TEST_F(StreamHandoverTest, an_engine_without_a_table_is_not_offered_anything) {
    StreamHandover handover(nullptr, socket.get());
    handover.offer(exchange);
    handover.wrote(5, true);
    EXPECT_TRUE(handover.begin_words());
    handover.end_words();
    EXPECT_TRUE(handover.take_over(false));
    EXPECT_EQ(handover.direct().chunks, 0u);
    EXPECT_TRUE(handover.direct().at_event_end);
}

TEST_F(StreamHandoverTest, the_offer_names_the_slot_and_brings_the_socket) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    handover.offer(exchange);
    learn_loan();
    UniqueFd connection(::accept4(engine.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char head[3];
    ASSERT_EQ(::recv(connection.get(), head, sizeof head, MSG_WAITALL), 3);
    StreamOffer message{0, 0, 0};
    iovec part{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    whole.msg_control = control;
    whole.msg_controllen = sizeof control;
    ASSERT_EQ(::recvmsg(connection.get(), &whole, MSG_CMSG_CLOEXEC), static_cast<ssize_t>(sizeof message));
    EXPECT_EQ(message.magic, StreamOffer::kMagic);
    EXPECT_EQ(message.slot, loan.slot);
    EXPECT_EQ(message.generation, loan.generation);
    ASSERT_NE(CMSG_FIRSTHDR(&whole), nullptr);
    int number = -1;
    std::memcpy(&number, CMSG_DATA(CMSG_FIRSTHDR(&whole)), sizeof number);
    const UniqueFd copy(number);
    ASSERT_EQ(::send(copy.get(), "hi", 2, MSG_NOSIGNAL), 2);
    EXPECT_TRUE(client->read_until("hi"));
    EXPECT_EQ(::recv(connection.get(), head, sizeof head, MSG_DONTWAIT), -1) << "offered twice";
}

TEST_F(StreamHandoverTest, the_slot_goes_back_with_the_stream_and_with_an_offer_that_fails) {
    {
        StreamHandover handover(table, socket.get());
        handover.offer(exchange);
        learn_loan();
        EXPECT_TRUE(is_lent(*table, loan));
    }
    EXPECT_FALSE(is_lent(*table, loan));
    exchange.close();
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    for (const StreamSlot& slot : table->slots) EXPECT_EQ(slot.word & 7, 0u);
    EXPECT_TRUE(handover.take_over(false));
}

TEST_F(StreamHandoverTest, with_all_slots_lent_the_supervisor_has_the_stream) {
    while (lend_slot(*table)) {
    }
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    EXPECT_TRUE(handover.begin_words());
    EXPECT_TRUE(handover.take_over(false));
}

TEST_F(StreamHandoverTest, words_wait_for_no_engine_and_for_no_client) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    learn_loan();
    ASSERT_EQ(engine_begins(*table, loan), EngineTurn::mine);
    EXPECT_FALSE(handover.begin_words());
    engine_ends(*table, loan, true);
    EXPECT_TRUE(handover.begin_words());
    EXPECT_EQ(engine_begins(*table, loan), EngineTurn::wait);
    handover.end_words();
    const std::string much(1 << 20, 'x');
    while (::send(socket.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    EXPECT_FALSE(handover.begin_words()) << "the client takes nothing";
}

TEST_F(StreamHandoverTest, the_supervisor_learns_what_the_engine_wrote) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    learn_loan();
    engine_writes("data: 1\n\n", kAll, true);
    EXPECT_EQ(handover.direct().payload, 9u);
    EXPECT_EQ(handover.direct().chunks, 1u);
    EXPECT_TRUE(handover.direct().at_event_end);
    engine_writes("data: ", kAll, true);
    EXPECT_FALSE(handover.direct().at_event_end);
    EXPECT_FALSE(handover.direct().failed);
    EXPECT_TRUE(handover.take_over(false));
    EXPECT_EQ(engine_begins(*table, loan), EngineTurn::over);
}

TEST_F(StreamHandoverTest, a_running_engine_that_is_in_a_chunk_is_not_waited_for_long) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    learn_loan();
    engine_writes("data: 1\n\n", 4, false);
    EXPECT_FALSE(handover.take_over(false));
}

TEST_F(StreamHandoverTest, an_engine_that_finishes_its_chunk_is_waited_for) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    learn_loan();
    ASSERT_EQ(engine_begins(*table, loan), EngineTurn::mine);
    std::thread engine_thread([&] { engine_ends(*table, loan, true); });
    EXPECT_TRUE(handover.take_over(false));
    engine_thread.join();
}

TEST_F(StreamHandoverTest, a_chunk_that_the_engine_gave_up_cannot_be_added_to) {
    StreamHandover handover(table, socket.get());
    handover.offer(exchange);
    learn_loan();
    engine_writes("data: 1\n\n", 4, false);
    engine_ends(*table, loan, false);
    EXPECT_FALSE(handover.take_over(false));
    EXPECT_FALSE(handover.take_over(true));
}

// An engine that is killed while it writes: what the kernel took from it tells how far it came.
TEST_F(StreamHandoverTest, a_dead_engines_chunk_is_told_by_what_the_socket_took) {
    struct Case {
        size_t bytes;
        bool can_add, at_event_end;
    };
    const std::string payload = "data: 1\n";  // a chunk of 13 bytes
    for (const Case& one : {Case{0, true, true}, Case{1, false, true}, Case{12, false, true}, Case{13, true, false}}) {
        StreamHandover handover(table, socket.get());
        handover.wrote(100, false);  // before the offer: not of this body
        handover.offer(exchange);
        for (uint32_t i = 0; i < StreamTable::kSlots; i++)
            for (uint64_t generation = 1; generation < 5; generation++)
                if (is_lent(*table, {i, generation})) loan = {i, generation};
        to_client("5\r\nhello\r\n");
        handover.wrote(5, true);
        to_client("11\r\n12345678901234567\r\n");
        handover.wrote(17, true);
        engine_writes("data: 0\n\n", kAll, true);
        engine_writes(payload, one.bytes, false);
        EXPECT_EQ(handover.take_over(true), one.can_add) << one.bytes;
        if (one.can_add) {
            EXPECT_EQ(handover.direct().at_event_end, one.at_event_end) << one.bytes;
        }
        EXPECT_EQ(slot_state(*table, loan), SlotState::engine);
    }
}

}  // namespace
}  // namespace onebit::testing
