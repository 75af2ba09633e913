// Measures prefill and decode on each device, in turns, and whether the device computes what the CPU computes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/compare.h"

namespace onebit {

struct BenchRequest {
    std::string model_file;
    std::string model_name;            // as it is shown
    size_t model_files = 1;            // shards; model_file is the first
    std::vector<std::string> devices;  // ggml names, at least one
    std::vector<uint32_t> prompts{128, 512};
    std::vector<uint32_t> depths{0, 1024};  // tokens already in the cache
    uint32_t generate = 32;
    uint32_t repeat = 5;
    uint32_t ubatch = 512;
    uint32_t threads = 0;          // 0: as many as the machine has
    uint32_t check_tokens = 1024;  // positions compared with the CPU; 0: none
    std::string text;              // tokens are taken from it; empty: the held-out text of the built-in model
    std::function<void(const std::string& step)> progress;  // on the caller's thread; may be empty
};

enum class BenchPhase { prefill, decode };

struct BenchCell {
    std::string device;
    BenchPhase phase = BenchPhase::prefill;
    uint32_t tokens = 0, depth = 0;
    std::vector<double> samples;  // tokens per second
};

struct BenchCheck {
    std::string device;
    Comparison comparison;
    std::vector<std::string> faults;  // empty: right
};

// What clients of `1bit serve` got; a round is one request of each client, all begun at once.
struct ServedCell {
    std::string device;
    uint32_t clients = 0, prompt = 0, generate = 0;
    std::vector<double> tokens_per_second;         // one a round: generated tokens of all over the round's time
    std::vector<double> decode_tokens_per_second;  // one a request, as the engine measured it beside the others
    std::vector<double> first_token_ms;            // one a request
};

struct BenchReport {
    std::string model;
    std::vector<std::pair<std::string, std::string>> conditions;  // what the figures depend on, in order of printing
    std::vector<std::string> devices;
    std::vector<BenchCell> cells;
    std::vector<BenchCheck> checks;  // none when nothing was compared
    std::vector<ServedCell> served;  // none when nothing was measured through the port
    uint32_t checked_window = 0;     // tokens that each compared position could see at most
    bool right() const;              // no device has a fault
};

// Loads the model once for each device and once for the CPU, all at the same time. Error usage for sizes past the
// model's context, not_found for a device, invalid for the model, no_space when a context cannot be made.
// Not safe beside other users of llama.cpp in the process: its log is taken over.
Result<BenchReport> run_bench(const BenchRequest& request);

// The held-out text that the built-in model was not trained on.
std::string held_out_text();

std::string bench_to_text(const BenchReport& report);
std::string bench_to_markdown(const BenchReport& report);
std::string bench_to_json(const BenchReport& report);
// A drawing of medians with quartiles: one panel for each phase, one bar for each device.
std::string bench_to_svg(const BenchReport& report);

}  // namespace onebit
