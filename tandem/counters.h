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
    uint64_t graphs = 0, prefill_tokens = 0, decode_tokens = 0;
    uint64_t failures = 0;  // graphs that ended in an error or in NaN
    bool dropped = false;   // not used any more, after repeated failures
};

struct Counts {
    std::string tandem;
    std::vector<MemberCounts> members;              // the owner first
    uint64_t handoffs = 0;                          // a graph or piece ran on another member than the one before
    uint64_t handoff_us = 0;                        // waiting for the member before
    uint64_t repeats = 0;                           // graphs run again on another member after a failure
    uint64_t staged_writes = 0, direct_writes = 0;  // inputs delivered with the graph, and at once
    uint64_t shadow_builds = 0, shadow_hits = 0;
    uint64_t shared_bytes = 0, shared_buffers = 0;
    std::map<std::string, uint64_t> fallbacks;  // reason: graphs that did not run whole on the member of their phase
};

// Of every tandem in this process. Any thread.
std::vector<Counts> tandem_counts();

struct MemberCounters {
    std::atomic<uint64_t> graphs{0}, prefill_tokens{0}, decode_tokens{0}, failures{0};
    std::atomic<bool> dropped{false};
};

struct Counters {
    std::vector<MemberCounters> members;
    std::atomic<uint64_t> handoffs{0}, handoff_us{0}, repeats{0}, staged_writes{0}, direct_writes{0}, shadow_builds{0},
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

private:
    mutable std::mutex mutex_;
    std::map<std::string, uint64_t> fallbacks_;
};

}  // namespace onebit::tandem
