// How much memory a model needs on each device, and whether it fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {

struct PlanRequest {
    std::string model_file;
    std::vector<std::string> devices;  // ggml device names; empty: as the server would choose
    uint32_t context = 0;              // tokens of each slot; 0: the model's own
    uint32_t parallel = 1;             // slots
    bool shared = false;               // context is that of all slots together, as llama.cpp's own -c
    uint32_t ubatch = 512;
    std::string cache_type_k = "f16", cache_type_v = "f16";
};

struct PlanRow {
    std::string device;  // "CPU", "Vulkan0"
    std::string pool;    // rows of one pool share their memory: counted once against it
    uint64_t weights = 0, kv_cache = 0, compute = 0;
    uint64_t free_bytes = 0, total_bytes = 0;  // 0: unknown
    uint64_t needed() const { return weights + kv_cache + compute; }
};

struct Plan {
    std::string model;
    uint32_t context = 0;  // as in the request
    uint32_t slots = 1;
    bool shared = false;
    std::vector<PlanRow> rows;
    bool fits = true;  // every row: needed() <= free, and every pool: sum of needed() <= the largest free of
                       // its rows; unknown counts as fitting, with a note
    std::vector<std::string> notes;  // what does not fit and what would: a smaller context, another device
};

// Loads the model without its weights (llama.cpp's own measure). Error invalid or not_found for the file.
Result<Plan> plan_model(const PlanRequest& request);

// The rule alone, for tests.
void judge(Plan& plan);

// Bytes left in the tightest row or pool; negative: missing. INT64_MAX when nothing is known. For tests and search.
int64_t slack_bytes(const Plan& plan);

// As `1bit plan` and a refusing `serve` print it.
std::string to_table(const Plan& plan);
// "4 slots of 8192 tokens each"
std::string slots_text(const Plan& plan);
// {"fits", "model", "context", "slots", "table", "rows", "notes"}
std::string plan_to_json(const Plan& plan);

}  // namespace onebit
