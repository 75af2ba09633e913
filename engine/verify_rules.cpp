#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "engine/verify.h"

namespace onebit {
namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

uint64_t counted(std::span<const MemberTokens> tokens) {
    uint64_t sum = 0;
    for (const MemberTokens& member : tokens) sum += member.prefill + member.decode;
    return sum;
}

}  // namespace

std::vector<uint32_t> verify_edges(uint32_t ubatch, uint32_t threshold, bool beyond_4096) {
    std::set<uint32_t> lengths = {1, 2};
    const auto around = [&lengths](uint64_t length) {
        for (const uint64_t one : {length - 1, length, length + 1}) {
            if (length != 0 && one != 0 && one <= UINT32_MAX) lengths.insert(static_cast<uint32_t>(one));
        }
    };
    const uint64_t whole = ubatch;
    around(whole);
    lengths.insert(static_cast<uint32_t>(std::min<uint64_t>(3 * whole, UINT32_MAX)));
    const uint64_t least = std::min(threshold, ubatch);
    if (least != 0) {
        around(least);
        around(whole + least);
    }
    if (beyond_4096) {
        around(4096);
        around(4096 + whole);
    }
    return {lengths.begin(), lengths.end()};
}

std::vector<std::string> verify_faults(const VerifyCase& one, const std::optional<Comparison>& usual,
                                       const VerifyLimits& limits) {
    std::vector<std::string> found;
    const Comparison& tested = one.tested;
    if (tested.tokens == 0) found.push_back("no position was compared");
    if (tested.not_finite != 0) {
        found.push_back(std::to_string(tested.not_finite) + " of " + std::to_string(tested.tokens) +
                        " positions have logits that are no numbers");
    }
    const uint64_t good = tested.tokens - tested.not_finite;
    if (good == 0) return found;
    double mean_limit = limits.mean_kl, max_limit = limits.max_kl;
    for (const std::optional<Comparison>* third : {&one.third, &usual}) {
        if (!*third || (*third)->tokens == (*third)->not_finite) continue;
        mean_limit = std::max(mean_limit, limits.factor * (*third)->mean_kl);
        max_limit = std::max(max_limit, limits.factor * (*third)->max_kl);
    }
    // written so that a NaN is a fault
    if (!(tested.mean_kl <= mean_limit)) {
        found.push_back("mean KL " + number(tested.mean_kl) + " is above " + number(mean_limit));
    }
    if (!(tested.max_kl <= max_limit)) {
        found.push_back("largest KL " + number(tested.max_kl) + " is above " + number(max_limit));
    }
    const uint64_t clear = good - tested.ties;
    const uint64_t allowed = std::max<uint64_t>(1, limits.one_in == 0 ? 0 : clear / limits.one_in);
    if (one.different > allowed) {
        found.push_back(std::to_string(one.different) + " of " + std::to_string(clear) +
                        " positions that are no tie have another best token, " + std::to_string(allowed) + " may");
    }
    // a divergence of k moves a token's log-probability by about sqrt(2 k), and the mean of n by that over sqrt(n):
    // four times as much is no accident
    const double moved = std::abs(std::log(tested.perplexity_ratio()));
    const double movement = std::max(limits.perplexity, 4 * std::sqrt(2 * mean_limit / static_cast<double>(good)));
    if (!(moved <= movement)) {
        found.push_back("perplexity " + number(tested.perplexity) + " is not within " + number(movement * 100) +
                        " % of " + number(tested.perplexity_reference));
    }
    return found;
}

std::vector<MemberTokens> tokens_between(std::span<const MemberTokens> before, std::span<const MemberTokens> after) {
    std::vector<MemberTokens> between;
    for (MemberTokens member : after) {
        const auto old = std::ranges::find(before, member.member, &MemberTokens::member);
        if (old != before.end()) {
            member.prefill -= std::min(member.prefill, old->prefill);
            member.decode -= std::min(member.decode, old->decode);
        }
        if (member.prefill != 0 || member.decode != 0) between.push_back(std::move(member));
    }
    return between;
}

std::vector<std::string> split_faults(const VerifyDevice& device, std::span<const MemberTokens> tokens,
                                      uint64_t submitted) {
    std::vector<std::string> found;
    if (!device.counters) {
        if (device.split) found.push_back("a split was asked for and nothing counts where tokens ran");
        return found;
    }
    if (const uint64_t sum = counted(tokens); sum != submitted) {
        found.push_back(std::to_string(submitted) + " tokens were given to " + device.label + " and " +
                        std::to_string(sum) + " were counted");
    }
    if (!device.split) return found;
    const auto computed = [](const MemberTokens& member) { return member.prefill + member.decode != 0; };
    const auto members = std::ranges::count_if(tokens, computed);
    if (members == 1) {
        found.push_back("a split was asked for but all tokens ran on " +
                        std::ranges::find_if(tokens, computed)->member);
    } else if (members == 0) {
        found.push_back("a split was asked for and no member counted a token");
    }
    return found;
}

bool VerifyReport::right() const {
    return faults.empty() && !cases.empty() &&
           std::ranges::all_of(cases, [](const VerifyCase& one) { return one.faults.empty(); });
}

}  // namespace onebit
