#include "server/supervisor/stream_table.h"

namespace onebit {
namespace {

constexpr uint64_t kStateBits = 3, kStateMask = (1u << kStateBits) - 1;

uint64_t word_of(uint64_t generation, SlotState state) {
    return generation << kStateBits | static_cast<uint64_t>(state);
}
SlotState state_of(uint64_t word) { return static_cast<SlotState>(word & kStateMask); }

StreamSlot& slot_of(StreamTable& table, const StreamLoan& loan) { return table.slots[loan.slot % StreamTable::kSlots]; }

bool change(StreamTable& table, const StreamLoan& loan, SlotState from, SlotState to) {
    uint64_t expected = word_of(loan.generation, from);
    return slot_of(table, loan).word.compare_exchange_strong(expected, word_of(loan.generation, to));
}

}  // namespace

SlotState slot_state(const StreamTable& table, const StreamLoan& loan) {
    if (loan.slot >= StreamTable::kSlots) return SlotState::free;
    const uint64_t word = table.slots[loan.slot].word.load();
    return word >> kStateBits == loan.generation ? state_of(word) : SlotState::free;
}

std::optional<StreamLoan> lend_slot(StreamTable& table) {
    static std::atomic<uint32_t> start{0};  // streams that begin at once do not meet at one slot
    const uint32_t first = start.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t i = 0; i < StreamTable::kSlots; i++) {
        const uint32_t at = (first + i) % StreamTable::kSlots;
        StreamSlot& slot = table.slots[at];
        uint64_t word = slot.word.load();
        if (state_of(word) != SlotState::free) continue;
        const uint64_t generation = (word >> kStateBits) + 1;
        if (!slot.word.compare_exchange_strong(word, word_of(generation, SlotState::idle))) continue;
        // the engine does not know of this loan yet
        slot.relayed = slot.payload = slot.framed = 0;
        slot.first = slot.last = 0;
        slot.chunks = slot.writing = slot.client_failed = 0;
        slot.end = slot.writing_end = 0;
        return StreamLoan{at, generation};
    }
    return {};
}

void return_slot(StreamTable& table, const StreamLoan& loan) {
    for (;;) {
        const SlotState state = slot_state(table, loan);
        if (state == SlotState::free || state == SlotState::abandoned) return;
        if (change(table, loan, state, state == SlotState::engine ? SlotState::abandoned : SlotState::free)) return;
    }
}

bool supervisor_begins(StreamTable& table, const StreamLoan& loan) {
    return change(table, loan, SlotState::idle, SlotState::supervisor);
}

void supervisor_ends(StreamTable& table, const StreamLoan& loan) {
    change(table, loan, SlotState::supervisor, SlotState::idle);
}

SlotState close_slot(StreamTable& table, const StreamLoan& loan) {
    for (;;) {
        const SlotState state = slot_state(table, loan);
        if (state != SlotState::idle || change(table, loan, state, SlotState::closed)) return state;
    }
}

bool is_lent(const StreamTable& table, const StreamLoan& loan) {
    const SlotState state = slot_state(table, loan);
    return state == SlotState::idle || state == SlotState::supervisor;
}

EngineTurn engine_begins(StreamTable& table, const StreamLoan& loan) {
    if (change(table, loan, SlotState::idle, SlotState::engine)) return EngineTurn::mine;
    return is_lent(table, loan) ? EngineTurn::wait : EngineTurn::over;
}

void engine_ends(StreamTable& table, const StreamLoan& loan, bool whole) {
    if (change(table, loan, SlotState::engine, whole ? SlotState::idle : SlotState::broken)) return;
    change(table, loan, SlotState::abandoned, SlotState::free);
}

}  // namespace onebit
