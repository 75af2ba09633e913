// Writes a GGUF model of random weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/make-model/file_types.h"
#include "tools/make-model/shapes.h"

namespace onebit {

struct ModelRequest {
    ModelShape shape;
    FileType type;
    std::filesystem::path file;
    uint64_t seed = 1;
    double logit_deviation = 6;
    unsigned threads = 1;
};

struct PlannedTensor {
    TensorSpec spec;
    ggml_type type = GGML_TYPE_F32;
    uint64_t bytes = 0;
};

struct ModelPlan {
    std::vector<PlannedTensor> tensors;
    uint64_t parameters = 0;
    uint64_t tensor_bytes = 0;  // without padding between tensors
};

// What would be written, without writing it.
ModelPlan plan_model_file(const ModelRequest& request);

// Writes the file under a temporary name beside it and renames it when it is whole. Memory: the pools of block_pool.h
// and 4 MiB a thread. The bytes depend on the shape, the type, the seed and the deviation, not on the threads.
// Error no_space when the disk is too small, io when it cannot be written.
Result<ModelPlan> write_model(const ModelRequest& request);

}  // namespace onebit
