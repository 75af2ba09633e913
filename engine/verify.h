// Whether two choices of devices compute the same: both are given the same tokens, prompt by prompt and token by token,
// and their distributions over the next token are compared at each position.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/compare.h"

struct llama_context;

namespace onebit {

// Tokens that a member of a split computed, since the process started.
struct MemberTokens {
    std::string member;
    uint64_t prefill = 0, decode = 0;
};

// One side of the comparison.
struct VerifyDevice {
    std::string label;                                    // as it is shown
    std::vector<std::string> devices;                     // ggml names; "CPU" alone for no other
    bool split = false;                                   // prefill and decode were asked to run on different members
    uint32_t prefill_min_tokens = 0;                      // of the split: an edge to test around; 0: none is known
    std::function<std::vector<MemberTokens>()> counters;  // empty: nothing is counted
    std::function<void(uint32_t slot, llama_context*)> damage;  // for tests: called after a slot's prompt was read
};

// A case passes when the mean and the largest divergence are at most these, or at most `factor` times what the third
// device shows in the same case or in all cases, whichever is most: two devices that round differently may differ by so
// much. All cases count because the largest of a few positions says little.
struct VerifyLimits {
    double mean_kl = 0.0006, max_kl = 0.007;
    double factor = 1.2;
    uint32_t one_in = 65;      // of so many positions that are no tie, one may have another best token
    double tie_margin = 0.25;  // in logits
    double perplexity = 0.01;  // of the reference's, to either side; more where the divergence allowed explains more

    // Two devices of different kinds, and no third that shows what is usual.
    static VerifyLimits without_third() {
        VerifyLimits limits;
        limits.mean_kl = 0.02;
        limits.max_kl = 0.2;
        return limits;
    }
};

struct VerifyRequest {
    std::string model_file, model_name;
    VerifyDevice tested, reference;
    std::optional<VerifyDevice> third;
    std::vector<uint32_t> prompts;  // tokens of a prompt; empty: verify_edges(), as far as the model's context goes
    bool beyond_4096 = false;       // edges past the first 4096 tokens too
    std::vector<uint32_t> slots{1, 4};
    uint32_t generate = 64;  // tokens fed one by one after the prompt
    uint32_t ubatch = 512;
    uint32_t threads = 0;  // 0: as many as the machine has
    std::string cache_type_k = "f16", cache_type_v = "f16", flash_attention = "auto";
    std::string text;  // tokens are taken from it; empty: the held-out text of the built-in model
    VerifyLimits limits;
    std::function<void(const std::string& step)> progress;  // on the caller's thread; may be empty
};

// Lengths of prompts around every edge: one token, a ubatch, the threshold of a split (alone and after a whole ubatch),
// several ubatches, with one less and one more. threshold: 0 for none; counts at most one ubatch. Ascending, without
// repetition; a prompt of no token is one of one token, for something must be read.
std::vector<uint32_t> verify_edges(uint32_t ubatch, uint32_t threshold, bool beyond_4096);

// Another best token than the reference's, at a position that is no tie.
struct VerifyDivergence {
    uint32_t slot = 0, position = 0;  // position 0 is the one after the prompt
};

struct VerifyCase {
    uint32_t prompt = 0, slots = 0;
    Comparison tested;                // with the reference
    std::optional<Comparison> third;  // with the reference too
    uint64_t different = 0;           // positions that are no tie and have another best token
    std::optional<VerifyDivergence> first_divergence;
    uint64_t submitted = 0;            // tokens given to each side
    std::vector<MemberTokens> tokens;  // of the tested side in this case
    std::vector<std::string> faults;   // empty: within the limits
};

struct VerifyReport {
    std::string model, tested, reference, third;  // third: empty for none
    VerifyLimits limits;
    std::vector<std::pair<std::string, std::string>> conditions;
    std::vector<VerifyCase> cases;
    std::optional<Comparison> usual;   // the third with the reference, over all cases
    bool split = false;                // was asked for
    std::vector<MemberTokens> tokens;  // of the tested side in all cases
    std::vector<std::string> faults;   // of the run as a whole
    bool right() const;                // no fault anywhere
};

// What is wrong with a case, each with the number and its limit. usual: as in the report.
std::vector<std::string> verify_faults(const VerifyCase& one, const std::optional<Comparison>& usual,
                                       const VerifyLimits& limits);

// What is wrong with where the tokens ran: a split that was asked for and did not happen, tokens that nobody counted.
std::vector<std::string> split_faults(const VerifyDevice& device, std::span<const MemberTokens> tokens,
                                      uint64_t submitted);

// Tokens by member between two readings of the counters, without members that had none.
std::vector<MemberTokens> tokens_between(std::span<const MemberTokens> before, std::span<const MemberTokens> after);

// Loads the model once for each side, all at the same time. Errors as of run_bench(). Not safe beside other users of
// llama.cpp in the process: its log is taken over.
Result<VerifyReport> run_verify(const VerifyRequest& request);

std::string verify_to_text(const VerifyReport& report);
std::string verify_to_json(const VerifyReport& report);

}  // namespace onebit
