// What a tandem did: counted by the streams, read by metrics, bench and verify.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace onebit::tandem {

// A copy of the counters at one moment. Times are microseconds as the calling thread saw them.
struct MemberCounts {
    std::string member;
    uint64_t graphs = 0, prefill_graphs = 0;  // those of prefill are among the others
    uint64_t prefill_tokens = 0, decode_tokens = 0;
    uint64_t failures = 0;  // graphs that ended in an error or in NaN
    bool dropped = false;   // not used any more, after repeated failures
};

struct Counts {
    std::string tandem;
    std::string prefill, decode;                    // members of the phases
    uint64_t min_tokens = 0;                        // of a graph that is prefill
    std::vector<MemberCounts> members;              // the owner first
    uint64_t handoffs = 0;                          // a graph or piece ran on another member than the one before
    uint64_t handoff_us = 0;                        // waiting for the member before
    uint64_t repeats = 0;                           // graphs run again on another member after a failure
    uint64_t refused = 0;                           // graphs that no member could run, or strict allowed none
    uint64_t staged_writes = 0, direct_writes = 0;  // inputs delivered with the graph, and at once
    uint64_t staged_bytes = 0;                      // of the former
    // Of the calling thread: choosing members and orders, handing inputs over, handing graphs over, waiting for
    // members.
    uint64_t plan_us = 0, input_us = 0, submit_us = 0, wait_us = 0;
    uint64_t arranged = 0;  // graphs for which the members were asked for an order and for wishes
    uint64_t prepared = 0;  // graphs whose plan and shadow were made while the graph before was running
    uint64_t shadow_builds = 0, shadow_hits = 0;
    uint64_t shared_bytes = 0, shared_buffers = 0;
    std::map<std::string, uint64_t> fallbacks;  // reason: graphs that did not run whole on the member of their phase
    std::string last_error;                     // of the last graph that failed for good; empty if none did
};

// Of every tandem in this process. Any thread.
std::vector<Counts> tandem_counts();

// From now on the word holds 1 + the number of the member that works at a graph, and 0 while none does: who shares the
// memory learns in which member a process died. Of the tandem that ran a graph last. The word must stay valid; null
// ends it.
void watch_running_member(std::atomic<uint64_t>* word);

struct MemberCounters {
    std::atomic<uint64_t> graphs{0}, prefill_graphs{0}, prefill_tokens{0}, decode_tokens{0}, failures{0};
    std::atomic<bool> dropped{false};
};

struct Counters {
    std::vector<MemberCounters> members;
    std::atomic<uint64_t> handoffs{0}, handoff_us{0}, repeats{0}, refused{0}, staged_writes{0}, direct_writes{0},
        staged_bytes{0}, plan_us{0}, input_us{0}, submit_us{0}, wait_us{0}, arranged{0}, prepared{0}, shadow_builds{0},
        shadow_hits{0}, shared_bytes{0}, shared_buffers{0};
    explicit Counters(size_t count) : members(count) {}

    // True the first time for this reason.
    bool add_fallback(const std::string& reason) {
        const std::lock_guard lock(mutex_);
        return fallbacks_[reason]++ == 0;
    }
    std::map<std::string, uint64_t> fallbacks() const {
        const std::lock_guard lock(mutex_);
        return fallbacks_;
    }
    void set_last_error(std::string text) {
        const std::lock_guard lock(mutex_);
        last_error_ = std::move(text);
    }
    std::string last_error() const {
        const std::lock_guard lock(mutex_);
        return last_error_;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, uint64_t> fallbacks_;
    std::string last_error_;
};

}  // namespace onebit::tandem
