// The streams whose engine writes to the client's socket itself, in memory that supervisor and engine share: who may
// write to the client now, and what the engine has written. The supervisor lends a slot to a stream; the engine learns
// of it with the socket. Both are the same binary, so the layout is private.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace onebit {

// A client that takes nothing for so long has its stream ended.
inline constexpr std::chrono::seconds kClientWriteLimit{120};

enum class SlotState : uint64_t {
    free,
    idle,        // lent; nobody writes, what the client has got is whole chunks
    engine,      // the engine writes a chunk
    supervisor,  // the supervisor writes a chunk
    closed,      // the engine may write nothing any more
    broken,      // the engine left a chunk unfinished: nobody may write any more
    abandoned,   // given back while the engine was writing; the engine frees it
};

struct alignas(64) StreamSlot {
    std::atomic<uint64_t> word;     // SlotState in the low bits, above them how often the slot was lent
    std::atomic<uint64_t> relayed;  // payload bytes from the engine that the supervisor has written to the client
    // The engine's, of whole chunks that it wrote to the client:
    std::atomic<uint64_t> payload, framed;  // bytes without and with their chunk framing
    std::atomic<int64_t> first, last;       // times of steady_clock, in its ticks
    std::atomic<uint32_t> chunks;
    std::atomic<uint32_t> writing;                 // bytes of the chunk that is being written, with its framing
    std::atomic<uint16_t> end, writing_end;        // the last two payload bytes: of all chunks, and of that one
    std::atomic<uint32_t> client_failed;           // 1: the client's socket failed, or took nothing for too long
    static constexpr uint16_t kEventEnd = 0x0a0a;  // of `end`: two line feeds
    static uint16_t end_of(char before_last, char last) {
        return static_cast<uint16_t>(static_cast<unsigned char>(before_last) << 8 | static_cast<unsigned char>(last));
    }
};
static_assert(sizeof(StreamSlot) == 64 && std::atomic<uint64_t>::is_always_lock_free);

struct StreamTable {
    static constexpr size_t kSlots = 256;
    std::atomic<uint32_t> taken_up;  // 1: the engine takes clients' sockets
    std::array<StreamSlot, kSlots> slots;
};

// One loan of a slot, as both processes know it. Values are not trusted: a slot that is not lent so takes nothing.
struct StreamLoan {
    uint32_t slot = 0;
    uint64_t generation = 0;
};

// The message with which a client's socket goes to the engine.
struct StreamOffer {
    static constexpr uint32_t kMagic = 0xb17f00d5;
    uint32_t magic = kMagic;
    uint32_t slot = 0;
    uint64_t generation = 0;
};

// Supervisor. Any thread. Empty when all are lent.
std::optional<StreamLoan> lend_slot(StreamTable& table);
void return_slot(StreamTable& table, const StreamLoan& loan);
// idle -> supervisor; false when it is anything else.
bool supervisor_begins(StreamTable& table, const StreamLoan& loan);
void supervisor_ends(StreamTable& table, const StreamLoan& loan);
// idle -> closed; returns the state that it found.
SlotState close_slot(StreamTable& table, const StreamLoan& loan);
SlotState slot_state(const StreamTable& table, const StreamLoan& loan);  // free when it is not lent so

// Engine. By the one thread that has the stream.
bool is_lent(const StreamTable& table, const StreamLoan& loan);
enum class EngineTurn { mine, wait, over };
EngineTurn engine_begins(StreamTable& table, const StreamLoan& loan);  // idle -> engine
// whole: the client has whole chunks; else the slot is broken.
void engine_ends(StreamTable& table, const StreamLoan& loan, bool whole);

}  // namespace onebit
