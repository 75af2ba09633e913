// Shows in the shared page where llama.cpp's server has put weights, key-value cache and compute buffers, by functions
// of llama.cpp's public interface that stand before its own in the search for their names.
#pragma once

#include <vector>

#include "server/supervisor/placement.h"

struct llama_context;
struct llama_model;

namespace onebit {

// From now on `table` holds the memory of all contexts that live in this process. It must stay valid for ever.
void install_placement(PlacementTable& table);

// Called with each model that llama_model_load_from_file gives. Only models with memory of their own count; llama.cpp
// makes others to measure.
void note_model(const llama_model* model, bool has_memory);

// Memory of one context, with its model's weights if with_weights. The context must not be in use by another thread.
std::vector<DeviceMemory> memory_of(const llama_context* context, const llama_model* model, bool with_weights);

}  // namespace onebit
