// Which member of a tandem reads prompts, which makes tokens, and from how many tokens on: a pure function of what was
// measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/route_table.h"

namespace onebit {

// What the user has fixed, by names of members; empty: open.
struct RouteWish {
    std::string decode, prefill;
};

struct RouteChoice {
    std::string decode, prefill;  // equal when one device does everything
    uint32_t min_tokens = 0;      // ubatches of at least so many tokens go to `prefill`; 0: none do
    std::string reason;           // one line, for people
    bool split() const { return min_tokens > 0; }
};

// The differences that do not count: a member must be faster by more than this before work goes to it, and no choice is
// slower than the best device alone by more than this in anything that was measured.
inline constexpr double kRouteMargin = 0.02;

// The rule for software Vulkan, which is slower than the CPU that it runs on whatever one measures.
inline constexpr uint32_t kFixedMinTokens = 256;

// A graph of n tokens takes as long as measured, with straight lines between measured sizes and depths. The prefill
// member gets ubatches from the smallest size on from which it wins at every larger one, two switches counted; its
// times are lengthened by what a trial took longer than its parts. Open members are chosen for requests from 128 to
// 8192 tokens of prompt with 128 and 512 of answer; a split that gains less than the margin in every one of them is not
// worth a second device. Error not_found when 1 token or a whole ubatch was not measured at depth 0, or for a wish that
// is no member.
Result<RouteChoice> choose_route(const RouteTable& table, const RouteWish& wish);

// Expected seconds of a request alone: reading `prompt` tokens after `depth` cached ones, then making `generate`
// tokens, the first of which costs nothing, as its logits are those of the prompt. The table must be one that
// choose_route() takes.
double expected_seconds(const RouteTable& table, const RouteChoice& choice, uint32_t prompt, uint32_t generate,
                        uint32_t depth = 0);

// One device for everything, as a choice.
RouteChoice one_device(std::string device, std::string reason);

// Sizes of ubatches that are measured: 1, 8, 32, 128, 512 and so on, and the largest one.
std::vector<uint32_t> route_sizes(uint32_t ubatch);
// Depths that are measured: 0, 2048 and 8192, as far as a batch of so many tokens fits behind them.
std::vector<uint32_t> route_depths(uint32_t context, uint32_t batch);

}  // namespace onebit
