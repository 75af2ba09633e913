// What the tandem of this engine process did: for the supervisor in the shared page, for each request in its answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/supervisor/member_failure.h"
#include "server/supervisor/tandem_table.h"

struct llama_batch;

namespace onebit {

struct HeartbeatPage;

// One request's share of the process counters, from its slot's first batch to its answer.
struct RequestAccount {
    struct Member {
        uint64_t prefill_tokens = 0, decode_tokens = 0;  // by the phase of the batch, not of the request
    };
    std::map<std::string, Member> members;
    uint64_t handoffs = 0, handoff_us = 0;
    std::map<std::string, uint64_t> fallbacks;  // reason, graphs that the request had a part in
    bool mixed = false;  // a batch of several requests went to several members: the share is by tokens
};

// The difference between two reports of one process, shared out by the tokens that each sequence has in the batch.
// Whole tokens; the shares add up to the difference. Hand-offs count for the sequence with the most tokens. Pure.
void share_out(const TandemReport& before, const TandemReport& after, const std::map<int32_t, uint64_t>& tokens,
               std::map<int32_t, RequestAccount>* accounts);

// Publishes the tandem of this process in the page, and from then on after each batch. Without a tandem it only keeps
// the exclusions, for the answers. Call it once, before the server starts.
void install_tandem_account(HeartbeatPage& page, const std::vector<ExcludedMember>& excluded);

// After llama_decode of this batch, whatever it returned. A batch without sequences is no request's. Any thread.
void account_batch(const llama_batch& batch, bool failed);

// The object that stands as "onebit" in the timings of a slot's answer, as JSON text; empty when the process neither
// has nor had a tandem. Any thread.
std::string account_json(int32_t slot);
// The slot's request is over.
void forget_slot(int32_t slot);
// Why the last batch failed, in the tandem's words; empty when it did not.
std::string last_batch_error();

}  // namespace onebit
