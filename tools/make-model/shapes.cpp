#include "tools/make-model/shapes.h"

#include <algorithm>
#include <cmath>

namespace onebit {
namespace {

constexpr double score_deviation = 2.5;
constexpr double router_deviation = 2;
constexpr double embedding_deviation = 0.5;
constexpr double norm_deviation = 0.1;
constexpr double bias_deviation = 0.2;

// Sizes from the configurations that the models' authors publish.
std::vector<ModelShape> make_shapes() {
    std::vector<ModelShape> shapes;
    ModelShape qwen3;
    qwen3.architecture = "qwen3";
    qwen3.head_width = 128;
    qwen3.kv_heads = 8;
    qwen3.vocabulary = 151936;
    qwen3.text_tokens = 151643;
    qwen3.context = 40960;

    ModelShape shape = qwen3;
    shape.name = "qwen3-0.6b";
    shape.layers = 28;
    shape.width = 1024;
    shape.feed_forward = 3072;
    shape.heads = 16;
    shape.tied = true;
    shapes.push_back(shape);

    shape = qwen3;
    shape.name = "qwen3-8b";
    shape.layers = 36;
    shape.width = 4096;
    shape.feed_forward = 12288;
    shape.heads = 32;
    shapes.push_back(shape);

    shape = qwen3;
    shape.name = "qwen2.5-7b";
    shape.architecture = "qwen2";
    shape.layers = 28;
    shape.width = 3584;
    shape.feed_forward = 18944;
    shape.heads = 28;
    shape.kv_heads = 4;
    shape.vocabulary = 152064;
    shape.context = 32768;
    shapes.push_back(shape);

    shape = qwen3;
    shape.name = "qwen3-30b-a3b";
    shape.architecture = "qwen3moe";
    shape.layers = 48;
    shape.width = 2048;
    shape.feed_forward = 6144;
    shape.heads = 32;
    shape.kv_heads = 4;
    shape.experts = 128;
    shape.experts_used = 8;
    shape.expert_feed_forward = 768;
    shapes.push_back(shape);

    // for tests: the same graphs, small enough for software Vulkan
    ModelShape tiny = qwen3;
    tiny.name = "tiny";
    tiny.layers = 4;
    tiny.width = 256;
    tiny.feed_forward = 768;
    tiny.heads = 4;
    tiny.kv_heads = 2;
    tiny.head_width = 64;
    tiny.vocabulary = 2048;
    tiny.text_tokens = 2040;
    tiny.context = 32768;
    shapes.push_back(tiny);

    shape = tiny;
    shape.name = "tiny-tied";
    shape.tied = true;
    shapes.push_back(shape);

    shape = tiny;
    shape.name = "tiny-qwen2";
    shape.architecture = "qwen2";
    shapes.push_back(shape);

    shape = tiny;
    shape.name = "tiny-moe";
    shape.architecture = "qwen3moe";
    shape.experts = 16;
    shape.experts_used = 4;
    shape.expert_feed_forward = 256;
    shapes.push_back(shape);
    return shapes;
}

class TensorList {
public:
    TensorList(const ModelShape& shape, double logit_deviation) : shape_(shape), logit_deviation_(logit_deviation) {}

    std::vector<TensorSpec> make() {
        const uint64_t width = shape_.width;
        // the last norm's own weights lengthen its result a little
        const double last_norm = std::sqrt(1 + norm_deviation * norm_deviation);
        const double output = logit_deviation_ / (std::sqrt(static_cast<double>(width)) * last_norm);
        matrix("token_embd.weight", TensorRole::embedding, width, shape_.vocabulary,
               shape_.tied ? output : embedding_deviation);
        vector("output_norm.weight", width, 1, norm_deviation);
        if (!shape_.tied) matrix("output.weight", TensorRole::output, width, shape_.vocabulary, output);
        for (layer_ = 0; layer_ < shape_.layers; layer_++) {
            attention();
            if (shape_.experts != 0) {
                experts();
            } else {
                feed_forward();
            }
        }
        return std::move(tensors_);
    }

private:
    void matrix(const std::string& name, TensorRole role, uint64_t row, uint64_t rows, double deviation,
                uint32_t experts = 0) {
        tensors_.push_back({name, role, layer_, row, rows, experts, 0, deviation});
    }
    void vector(const std::string& name, uint64_t length, double mean, double deviation) {
        tensors_.push_back({name, TensorRole::vector, layer_, length, 1, 0, mean, deviation});
    }
    std::string part(const char* name) const { return "blk." + std::to_string(layer_) + "." + name; }
    static double keeping(uint64_t row) { return 1 / std::sqrt(static_cast<double>(row)); }

    void attention() {
        const uint64_t width = shape_.width, head = shape_.head_width;
        const uint64_t queries = shape_.heads * head, keys = shape_.kv_heads * head;
        // a query of n numbers of size s and such a key give scores of size s * s, once divided by sqrt(n)
        const double sharp = std::sqrt(score_deviation);
        const bool normed = shape_.architecture != "qwen2";
        const double scale = keeping(width) * (normed ? 1 : sharp);
        vector(part("attn_norm.weight"), width, 1, norm_deviation);
        matrix(part("attn_q.weight"), TensorRole::query, width, queries, scale);
        matrix(part("attn_k.weight"), TensorRole::key, width, keys, scale);
        matrix(part("attn_v.weight"), TensorRole::value, width, keys, keeping(width));
        matrix(part("attn_output.weight"), TensorRole::attention_output, queries, width, keeping(queries));
        if (normed) {
            vector(part("attn_q_norm.weight"), head, sharp, norm_deviation);
            vector(part("attn_k_norm.weight"), head, sharp, norm_deviation);
        } else {
            vector(part("attn_q.bias"), queries, 0, bias_deviation);
            vector(part("attn_k.bias"), keys, 0, bias_deviation);
            vector(part("attn_v.bias"), keys, 0, bias_deviation);
        }
        vector(part("ffn_norm.weight"), width, 1, norm_deviation);
    }

    void feed_forward() {
        const uint64_t width = shape_.width, inner = shape_.feed_forward;
        matrix(part("ffn_gate.weight"), TensorRole::gate, width, inner, keeping(width));
        matrix(part("ffn_up.weight"), TensorRole::up, width, inner, keeping(width));
        matrix(part("ffn_down.weight"), TensorRole::down, inner, width, keeping(inner));
    }

    void experts() {
        const uint64_t width = shape_.width, inner = shape_.expert_feed_forward;
        const uint32_t count = shape_.experts;
        matrix(part("ffn_gate_inp.weight"), TensorRole::router, width, count, router_deviation * keeping(width));
        matrix(part("ffn_gate_exps.weight"), TensorRole::gate, width, inner * count, keeping(width), count);
        matrix(part("ffn_up_exps.weight"), TensorRole::up, width, inner * count, keeping(width), count);
        matrix(part("ffn_down_exps.weight"), TensorRole::down, inner, width * count, keeping(inner), count);
    }

    const ModelShape& shape_;
    const double logit_deviation_;
    uint32_t layer_ = 0;
    std::vector<TensorSpec> tensors_;
};

}  // namespace

const std::vector<ModelShape>& model_shapes() {
    static const std::vector<ModelShape> shapes = make_shapes();
    return shapes;
}

const ModelShape* find_shape(std::string_view name) {
    const auto found = std::ranges::find(model_shapes(), name, &ModelShape::name);
    return found == model_shapes().end() ? nullptr : &*found;
}

std::vector<TensorSpec> tensors_of(const ModelShape& shape, double logit_deviation) {
    return TensorList(shape, logit_deviation).make();
}

}  // namespace onebit
