// What the tandem of an engine did: told by the engine through the shared page, shown by /metrics and /onebit/ps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace onebit {

// Counted since the engine process started.
struct TandemMember {
    std::string name;
    uint64_t graphs = 0, prefill_graphs = 0;  // those of prefill are among the others
    uint64_t prefill_tokens = 0, decode_tokens = 0;
    uint64_t errors = 0;   // graphs that ended in an error or in NaN
    bool dropped = false;  // not used any more, after repeated errors
    bool operator==(const TandemMember&) const = default;
};

struct TandemReport {
    std::string name;  // empty: the engine has no tandem
    std::vector<TandemMember> members;
    uint64_t owner = 0, prefill = 0, decode = 0;  // places in members
    uint64_t min_tokens = 0;                      // of a batch that counts as prefill
    uint64_t handoffs = 0, handoff_us = 0, repeats = 0, refused = 0, shared_bytes = 0;
    std::vector<std::pair<std::string, uint64_t>> fallbacks;  // reason, graphs
    bool operator==(const TandemReport&) const = default;
};

// In shared memory: the engine writes, the supervisor reads. A reader that meets a writer tries again.
struct TandemTable {
    static constexpr size_t kMembers = 4, kReasons = 8, kNameWords = 6, kReasonWords = 12;
    using Word = std::atomic<uint64_t>;
    struct Member {
        std::array<Word, kNameWords> name;
        Word graphs, prefill_graphs, prefill_tokens, decode_tokens, errors, dropped;
    };
    struct Reason {
        std::array<Word, kReasonWords> text;
        Word count;
    };
    Word version;  // odd while it is written
    std::array<Word, kNameWords> name;
    Word member_count, owner, prefill, decode, min_tokens;
    Word handoffs, handoff_us, repeats, refused, shared_bytes;
    std::array<Member, kMembers> members;
    Word reason_count;
    std::array<Reason, kReasons> reasons;
};

// One thread at a time. Names are cut at 47 bytes, reasons at 95; members beyond the fourth are left out, reasons
// beyond the eighth are counted as "others" in the last place.
void write_tandem(TandemTable& table, const TandemReport& report);
// Any thread. Without a name when nothing was written yet, or when a writer died in the middle. The page is the
// engine's, so that any content is read without harm.
TandemReport read_tandem(const TandemTable& table);

}  // namespace onebit
