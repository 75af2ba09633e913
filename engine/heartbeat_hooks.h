// Makes llama.cpp and ggml show their progress in the heartbeat page, without a change to their sources.
#pragma once

#include <cstdint>

#include "server/supervisor/heartbeat.h"

struct ggml_cgraph;

namespace onebit {

// From now on the page counts, in this process: graphs of every backend that is made later (CPU: each node too),
// compiled Vulkan pipelines, and the progress of every model that llama_model_load_from_file loads. page must stay
// valid for ever. Initialises drivers. Call it before the first backend is made, from one thread; again for another
// page.
void install_heartbeat(HeartbeatPage& page);

// Multiply-adds of a graph, estimated from some of its nodes: enough to tell a prompt from a token. Other operations
// count an element as one.
uint64_t graph_work(const ggml_cgraph* graph);

}  // namespace onebit
