// Runs the built-in model on a device, with a forced text, for comparisons.
#pragma once

#include <string>
#include <vector>

#include "llama.h"

namespace onebit::tandem {

struct ModelRun {
    std::vector<std::vector<float>> logits;  // one row a token asked for
    bool failed = false;                     // llama_decode reported an error
};

struct RunOptions {
    int prompt = 48;    // tokens read at once, in ubatches
    int answer = 8;     // tokens given one by one
    int sequences = 1;  // the same, so often in parallel
    uint32_t ubatch = 32;
    bool flash_attention = true;
    ggml_type cache = GGML_TYPE_F16;
    std::string model = {};    // the built-in one when empty
    bool callback = false;     // graphs are computed in pieces, for a callback that looks at some nodes
    uint64_t cache_bytes = 0;  // a context so long that the KV cache has at least as many; 0: just long enough
};

// A device by its name, such as "CPU"; a tandem by its settings, such as "owner=CPU,prefill=guest:CPU". A tandem is
// made once for each text.
ggml_backend_dev_t device_of(const std::string& choice);

// Rows: the last token of the prompt, then each token of the answer. Empty and failed when a step reports an error.
ModelRun run_model(const std::string& choice, const RunOptions& options = {});

// Bytes that the machine can give without swapping, as the kernel tells; 0 when it does not.
uint64_t available_memory();

// Kullback-Leibler divergence of the rows, mean over them, in nats.
double mean_divergence(const ModelRun& reference, const ModelRun& other);

// Whether every row has its highest value at the same place, or at one that the reference puts within `tie` of it.
bool same_top(const ModelRun& reference, const ModelRun& other, float tie);

}  // namespace onebit::tandem
