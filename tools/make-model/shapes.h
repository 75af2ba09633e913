// Shapes of real models: how many layers, how wide, which tensors, and how large their weights are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onebit {

struct ModelShape {
    std::string name;
    std::string architecture;  // as llama.cpp names it
    uint32_t layers = 0, width = 0, feed_forward = 0;
    uint32_t heads = 0, kv_heads = 0, head_width = 0;
    uint32_t experts = 0, experts_used = 0, expert_feed_forward = 0;  // 0: no experts
    uint32_t vocabulary = 0;
    uint32_t text_tokens = 0;  // of the vocabulary; control tokens and unused ones come after them
    uint32_t context = 0;
    bool tied = false;  // the token embedding is the output matrix too

    uint32_t queries_per_kv() const { return heads / kv_heads; }
};

const std::vector<ModelShape>& model_shapes();
const ModelShape* find_shape(std::string_view name);  // nullptr: none of this name

enum class TensorRole { embedding, output, query, key, value, attention_output, gate, up, down, router, vector };

struct TensorSpec {
    std::string name;
    TensorRole role = TensorRole::vector;
    uint32_t layer = 0;
    uint64_t row = 0;   // elements of a row, the input's width
    uint64_t rows = 1;  // of all experts together
    uint32_t experts = 0;
    double mean = 0, deviation = 0;

    uint64_t elements() const { return row * rows; }
};

// All tensors in the order of the file. Scales: each matrix keeps the size of what it reads (1/sqrt(row)); attention
// scores have a standard deviation of 2.5, so that a token looks at a few others and not at all alike; logits have
// the deviation asked for, since the last norm leaves a vector of length sqrt(width).
std::vector<TensorSpec> tensors_of(const ModelShape& shape, double logit_deviation);

}  // namespace onebit
