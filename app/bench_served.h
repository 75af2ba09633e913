// Measures what clients of `1bit serve` get: the model on a device, through the served port.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/bench.h"

namespace onebit {

struct ServedRequest {
    std::filesystem::path program;  // this binary
    std::string model_file;
    std::vector<std::string> devices;                       // ggml names, measured one after another
    std::vector<uint32_t> clients;                          // at one time, each 1 to 256
    uint32_t prompt = 128, generate = 32;                   // tokens of each request, at least 1
    uint32_t rounds = 5;                                    // a round is one request of each client, all begun at once
    uint32_t ubatch = 512;                                  // as bench itself has it
    uint32_t threads = 0;                                   // 0: as many as the machine has
    std::string text;                                       // prompts are taken from it, no two alike
    std::function<void(const std::string& step)> progress;  // may be empty
};

// Starts a server of its own for each device, on a free port of 127.0.0.1 with a key of its own, after a warm-up with
// each number of clients. Any request that fails or ends early is an error: unavailable.
Result<std::vector<ServedCell>> measure_served(const ServedRequest& request);

}  // namespace onebit
