// Times graphs of real shapes on each member of a tandem, over one context, so that memory exists once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/route_table.h"
#include "llama.h"

namespace onebit {

// How many whole ubatches are read at once where the members are measured: `most` where one of them is a GPU, which
// works at one while the next is handed over, and 1 for CPUs and software Vulkan. Names of ggml devices.
uint32_t ubatches_at_once(const std::vector<std::string>& members, uint32_t most);

struct MeterPlan {
    std::vector<std::string> members;  // of the tandem, the owner first; one: a device that is no tandem
    uint32_t ubatch = 512;
    std::vector<uint32_t> sizes, depths;  // route_sizes(), route_depths()
    uint32_t rounds = 5;                  // measurements of each, after one that warms up
    uint32_t ubatches_at_once = 1;        // of a sample of whole ubatches: read by one call, as a server reads prompts
    std::chrono::milliseconds cell_time{3000};      // of one size and member; the rounds that do not fit are left out
    std::vector<std::pair<size_t, size_t>> trials;  // pairs of members, prefill and decode
    uint32_t trial_ubatches = 4, trial_tokens = 32;
    std::function<void(const std::string& step)> progress;  // may be empty
};

// One thread at a time. What was measured stays: a run that was ended goes on where it stopped, also with another
// context of the same model.
class RouteMeter {
public:
    explicit RouteMeter(MeterPlan plan) : plan_(std::move(plan)) {}

    enum class End { finished, stopped, out_of_time };

    // Measures what is missing, in turns over the members: depth by depth, whole ubatches and single tokens first.
    // Looks at stop before each graph, and begins none that would end behind the time. context: empty, of one sequence,
    // with an ubatch of the plan's, a batch for ubatches_at_once and room for as many behind the largest depth; left
    // empty. tokens: text of that model. Error of a graph that failed.
    Result<End> run(llama_context* context, const std::vector<llama_token>& tokens, const std::function<bool()>& stop,
                    std::chrono::steady_clock::time_point until);

    // What is complete so far: cells that every member has; none before the cost of a switch is known.
    RouteTable table() const;

private:
    using Clock = std::chrono::steady_clock;
    struct Samples {
        std::vector<double> seconds;  // without the first, unless there is no other
        bool warm = false;
        double total = 0;
    };
    using Cell = std::pair<uint32_t, uint32_t>;  // depth, size

    Result<double> graphs(size_t member, uint32_t tokens);
    Result<void> read(uint32_t tokens);
    Result<void> fill(uint32_t depth);
    Result<void> rewind(uint32_t depth);
    Result<void> sample(uint32_t depth, uint32_t size, size_t member);
    Result<void> measure_depth(uint32_t depth);
    Result<void> measure_switch();
    Result<void> measure_trial(size_t prefill, size_t decode);
    bool done(const Samples& samples) const;
    bool ended(double expected_seconds);
    double rate(const Cell& cell, size_t member) const;
    double guess(uint32_t size) const;

    MeterPlan plan_;
    std::map<Cell, std::vector<Samples>> cells_;
    std::optional<double> switch_seconds_;
    std::map<std::pair<size_t, size_t>, std::vector<double>> trials_;

    // of the present run
    llama_context* context_ = nullptr;
    const std::vector<llama_token>* tokens_ = nullptr;
    const std::function<bool()>* stop_ = nullptr;
    Clock::time_point until_;
    uint32_t position_ = 0;
    End end_ = End::finished;
};

}  // namespace onebit
