// Breaks when supervisor and engine write to one client at once, or a stream gets at another stream's slot.
#include "server/supervisor/stream_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace onebit {
namespace {

class StreamTableTest : public ::testing::Test {
protected:
    StreamLoan lend() { return lend_slot(table).value(); }
    std::unique_ptr<StreamTable> memory = std::make_unique<StreamTable>();
    StreamTable& table = *memory;
};

TEST_F(StreamTableTest, a_new_table_lends_nothing_to_anybody) {
    for (uint64_t generation : {0ull, 1ull, ~0ull}) {
        EXPECT_FALSE(is_lent(table, {0, generation}));
        EXPECT_EQ(engine_begins(table, {0, generation}), EngineTurn::over);
        EXPECT_FALSE(supervisor_begins(table, {0, generation}));
    }
}

TEST_F(StreamTableTest, all_slots_can_be_lent_and_not_one_more) {
    std::set<uint32_t> seen;
    std::vector<StreamLoan> loans;
    for (size_t i = 0; i < StreamTable::kSlots; i++) {
        loans.push_back(lend());
        EXPECT_TRUE(seen.insert(loans.back().slot).second);
    }
    EXPECT_FALSE(lend_slot(table));
    return_slot(table, loans[17]);
    const StreamLoan again = lend();
    EXPECT_EQ(again.slot, loans[17].slot);
    EXPECT_NE(again.generation, loans[17].generation);
    EXPECT_FALSE(lend_slot(table));
}

TEST_F(StreamTableTest, one_writes_at_a_time) {
    const StreamLoan loan = lend();
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::mine);
    EXPECT_FALSE(supervisor_begins(table, loan));
    EXPECT_EQ(close_slot(table, loan), SlotState::engine);
    engine_ends(table, loan, true);
    EXPECT_TRUE(supervisor_begins(table, loan));
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::wait);
    supervisor_ends(table, loan);
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::mine);
}

TEST_F(StreamTableTest, after_the_last_words_the_engine_writes_nothing) {
    const StreamLoan loan = lend();
    EXPECT_EQ(close_slot(table, loan), SlotState::idle);
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::over);
    EXPECT_EQ(close_slot(table, loan), SlotState::closed);
    return_slot(table, loan);
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::over);
}

TEST_F(StreamTableTest, nobody_adds_to_a_chunk_that_is_not_whole) {
    const StreamLoan loan = lend();
    ASSERT_EQ(engine_begins(table, loan), EngineTurn::mine);
    engine_ends(table, loan, false);
    EXPECT_FALSE(supervisor_begins(table, loan));
    EXPECT_EQ(close_slot(table, loan), SlotState::broken);
    EXPECT_EQ(engine_begins(table, loan), EngineTurn::over);
    return_slot(table, loan);
    EXPECT_EQ(slot_state(table, loan), SlotState::free);
}

TEST_F(StreamTableTest, a_slot_that_the_engine_writes_in_is_not_lent_before_it_is_through) {
    std::vector<StreamLoan> loans;
    for (size_t i = 0; i < StreamTable::kSlots; i++) loans.push_back(lend());
    for (bool whole : {true, false}) {
        const StreamLoan loan = loans.front();
        ASSERT_EQ(engine_begins(table, loan), EngineTurn::mine);
        return_slot(table, loan);
        return_slot(table, loan);  // twice is once
        EXPECT_FALSE(lend_slot(table));
        engine_ends(table, loan, whole);
        loans.front() = lend();
        EXPECT_EQ(loans.front().slot, loan.slot);
    }
}

TEST_F(StreamTableTest, an_earlier_loan_reaches_nothing_of_a_later_one) {
    const StreamLoan old = lend();
    return_slot(table, old);
    StreamLoan present = lend();
    while (present.slot != old.slot) present = lend();
    EXPECT_FALSE(is_lent(table, old));
    EXPECT_EQ(engine_begins(table, old), EngineTurn::over);
    EXPECT_FALSE(supervisor_begins(table, old));
    ASSERT_EQ(engine_begins(table, present), EngineTurn::mine);
    engine_ends(table, old, true);
    return_slot(table, old);
    EXPECT_EQ(slot_state(table, present), SlotState::engine);
}

TEST_F(StreamTableTest, a_loan_begins_with_nothing_counted) {
    const StreamLoan first = lend();
    StreamSlot& slot = table.slots[first.slot];
    slot.relayed = slot.payload = slot.framed = 9;
    slot.first = slot.last = 9;
    slot.chunks = slot.writing = slot.client_failed = 9;
    slot.end = slot.writing_end = 9;
    return_slot(table, first);
    StreamLoan again = lend();
    while (again.slot != first.slot) again = lend();
    EXPECT_EQ(slot.relayed + slot.payload + slot.framed, 0u);
    EXPECT_EQ(slot.first + slot.last, 0);
    EXPECT_EQ(slot.chunks + slot.writing + slot.client_failed + slot.end + slot.writing_end, 0u);
}

TEST_F(StreamTableTest, loans_that_cannot_be_are_refused) {
    for (uint32_t slot : {uint32_t{StreamTable::kSlots}, ~0u}) {
        EXPECT_FALSE(is_lent(table, {slot, 0}));
        EXPECT_EQ(engine_begins(table, {slot, 0}), EngineTurn::over);
        return_slot(table, {slot, 0});
    }
    for (auto& slot : table.slots) slot.word = ~0ull;
    EXPECT_FALSE(lend_slot(table));
    EXPECT_FALSE(is_lent(table, {0, ~0ull >> 3}));
}

// Each side counts in a plain variable while it has the slot: a thread checker, or the sum, tells when both have it.
TEST_F(StreamTableTest, the_sides_keep_each_other_out) {
    const StreamLoan loan = lend();
    constexpr int kRounds = 20000;
    int64_t both = 0;
    int words = 0;
    std::thread engine([&] {
        for (int i = 0; i < kRounds;) {
            if (engine_begins(table, loan) != EngineTurn::mine) continue;
            both++, i++;
            engine_ends(table, loan, true);
        }
    });
    std::thread supervisor([&] {
        for (int i = 0; i < kRounds; i++) {
            if (!supervisor_begins(table, loan)) continue;
            both++, words++;
            supervisor_ends(table, loan);
        }
    });
    engine.join();
    supervisor.join();
    EXPECT_EQ(both, kRounds + words);
}

TEST_F(StreamTableTest, many_streams_at_once_get_a_slot_each) {
    std::vector<std::thread> threads;
    std::array<std::atomic<int>, StreamTable::kSlots> holders{};
    std::atomic<int> shared{0}, taken{0};
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 3000; i++) {
                const auto loan = lend_slot(table);
                if (!loan) continue;
                taken++;
                if (holders[loan->slot]++ != 0) shared++;
                holders[loan->slot]--;
                return_slot(table, *loan);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(shared, 0);
    EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace onebit
