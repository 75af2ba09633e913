// Measures the members of a tandem over one copy of a model, and chooses a route from what was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/route_choice.h"
#include "engine/route_table.h"

namespace onebit {

struct TuneRequest {
    std::string model_file, model_name;
    std::vector<std::string> members;  // ggml names, one or two; the owner of the memory is found among them
    RouteWish wish;
    uint32_t context = 16384;  // tokens that depths may take up, less where the model has less
    uint32_t ubatch = 512, threads = 0, rounds = 5;
    std::string cache_type_k = "f16", cache_type_v = "f16", flash_attention = "auto";
    std::function<void(const std::string& step)> progress;  // may be empty
};

struct TuneReport {
    std::string model;
    RouteTable table;
    RouteChoice choice;  // within the wish
    RouteChoice free;    // with everything open
    std::string stored;  // where the table is kept now; empty: nowhere
};

// Loads the model once, on the tandem of the two members, or on the one. Not safe beside other users of llama.cpp in
// the process. Error usage for a setting, not_found for a device, unsupported for two that cannot share memory, invalid
// for the model, no_space when a context cannot be made.
Result<TuneReport> run_tune(const TuneRequest& request);

// Prompts whose time to the first token is told.
std::vector<uint32_t> tuned_prompts();

std::string tune_to_text(const TuneReport& report);
std::string tune_to_json(const TuneReport& report);

}  // namespace onebit
