#include "tools/make-model/file_types.h"

#include <algorithm>
#include <cctype>

namespace onebit {
namespace {

template <typename... Types>
bool one_of(llama_ftype type, Types... types) {
    return ((type == types) || ...);
}

bool is_low(llama_ftype type) {
    return one_of(type, LLAMA_FTYPE_MOSTLY_IQ1_S, LLAMA_FTYPE_MOSTLY_IQ1_M, LLAMA_FTYPE_MOSTLY_IQ2_XXS,
                  LLAMA_FTYPE_MOSTLY_IQ2_XS, LLAMA_FTYPE_MOSTLY_IQ2_S, LLAMA_FTYPE_MOSTLY_IQ2_M);
}

bool is_upper_low(llama_ftype type) { return one_of(type, LLAMA_FTYPE_MOSTLY_IQ2_S, LLAMA_FTYPE_MOSTLY_IQ2_M); }

// What a rule sees of a model, in the names that its source gives it.
struct Place {
    llama_ftype file;
    ggml_type base;
    int layer, layers;
    bool shared_kv;  // at least four queries share a key and a value
    bool experts, importance;

    bool first(int part) const { return layer < layers / part; }
    // the first and the last eighth, and every third layer between
    bool costly() const { return first(8) || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2; }
};

ggml_type output_type(const Place& at, uint64_t row) {
    if (at.file == LLAMA_FTYPE_MOSTLY_MXFP4_MOE) return GGML_TYPE_Q8_0;
    if (row % static_cast<uint64_t>(ggml_blck_size(at.base)) != 0) return GGML_TYPE_Q8_0;
    if (is_low(at.file) || at.file == LLAMA_FTYPE_MOSTLY_IQ3_XXS) return GGML_TYPE_Q5_K;
    return at.base == GGML_TYPE_Q8_0 ? GGML_TYPE_Q8_0 : GGML_TYPE_Q6_K;
}

ggml_type embedding_type(const Place& at) {
    switch (at.file) {
        case LLAMA_FTYPE_MOSTLY_IQ1_S:
        case LLAMA_FTYPE_MOSTLY_IQ1_M:
        case LLAMA_FTYPE_MOSTLY_IQ2_XXS:
        case LLAMA_FTYPE_MOSTLY_IQ2_XS:
            return GGML_TYPE_Q2_K;
        case LLAMA_FTYPE_MOSTLY_IQ2_S:
        case LLAMA_FTYPE_MOSTLY_IQ2_M:
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS:
            return GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_TQ1_0:
        case LLAMA_FTYPE_MOSTLY_TQ2_0:
        case LLAMA_FTYPE_MOSTLY_Q2_0:
            return GGML_TYPE_Q4_K;
        default:
            return at.base;
    }
}

ggml_type value_type(const Place& at) {
    if (is_low(at.file)) {
        if (at.shared_kv || at.experts) return GGML_TYPE_Q4_K;
        return is_upper_low(at.file) ? GGML_TYPE_IQ3_S : GGML_TYPE_Q2_K;
    }
    switch (at.file) {
        case LLAMA_FTYPE_MOSTLY_Q2_K:
            return at.shared_kv ? GGML_TYPE_Q4_K : GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS:
            if (at.shared_kv) return GGML_TYPE_Q4_K;
            return at.importance ? GGML_TYPE_IQ3_XXS : GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_Q2_K_S:
        case LLAMA_FTYPE_MOSTLY_IQ3_XS:
        case LLAMA_FTYPE_MOSTLY_IQ3_S:
            return at.shared_kv ? GGML_TYPE_Q4_K : at.base;
        case LLAMA_FTYPE_MOSTLY_IQ3_M:
            return GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
            return at.layer < 2 ? GGML_TYPE_Q5_K : GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L:
            return GGML_TYPE_Q5_K;
        case LLAMA_FTYPE_MOSTLY_IQ4_NL:
        case LLAMA_FTYPE_MOSTLY_IQ4_XS:
            return at.shared_kv ? GGML_TYPE_Q5_K : at.base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_M:
        case LLAMA_FTYPE_MOSTLY_Q5_K_M:
            return at.costly() ? GGML_TYPE_Q6_K : at.base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_S:
            return at.layer < 4 ? GGML_TYPE_Q5_K : at.base;
        default:
            return at.base;
    }
}

ggml_type down_type(const Place& at) {
    if (is_low(at.file)) {
        if (!at.first(8)) return at.base;
        return is_upper_low(at.file) ? GGML_TYPE_IQ3_S : GGML_TYPE_Q2_K;
    }
    switch (at.file) {
        case LLAMA_FTYPE_MOSTLY_Q2_K:
            return GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q2_K_S:
            return at.first(8) ? GGML_TYPE_Q4_K : at.base;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS:
            if (at.importance) return at.base;
            return at.first(8) ? GGML_TYPE_Q4_K : GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
            return at.first(16) ? GGML_TYPE_Q5_K : GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_IQ3_M:
            return at.first(8) ? GGML_TYPE_Q4_K : at.base;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L:
            return GGML_TYPE_Q5_K;
        case LLAMA_FTYPE_MOSTLY_Q4_K_M:
        case LLAMA_FTYPE_MOSTLY_Q5_K_M:
            return at.costly() ? GGML_TYPE_Q6_K : at.base;
        case LLAMA_FTYPE_MOSTLY_IQ4_NL:
        case LLAMA_FTYPE_MOSTLY_IQ4_XS:
            return at.first(8) && !at.importance ? GGML_TYPE_Q5_K : at.base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_S:
            return at.first(8) ? GGML_TYPE_Q5_K : at.base;
        case LLAMA_FTYPE_MOSTLY_Q4_0:
            return at.first(8) && at.importance ? GGML_TYPE_Q4_1 : at.base;
        case LLAMA_FTYPE_MOSTLY_Q5_0:
            return at.first(8) && at.importance ? GGML_TYPE_Q5_1 : at.base;
        default:
            return at.base;
    }
}

ggml_type attention_output_type(const Place& at) {
    switch (at.file) {
        case LLAMA_FTYPE_MOSTLY_IQ1_S:
        case LLAMA_FTYPE_MOSTLY_IQ1_M:
            return GGML_TYPE_IQ2_XXS;
        case LLAMA_FTYPE_MOSTLY_IQ2_S:
        case LLAMA_FTYPE_MOSTLY_IQ2_M:
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS:
            return GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_Q2_K:
            return GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
        case LLAMA_FTYPE_MOSTLY_IQ3_M:
            return GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L:
            return GGML_TYPE_Q5_K;
        default:
            return at.base;
    }
}

ggml_type query_key_type(const Place& at) {
    if (at.file == LLAMA_FTYPE_MOSTLY_IQ3_XS) return GGML_TYPE_IQ3_XXS;
    return at.file == LLAMA_FTYPE_MOSTLY_IQ3_XXS ? GGML_TYPE_IQ2_S : at.base;
}

ggml_type gate_up_type(const Place& at) {
    const bool middle = !at.first(8) && at.layer < 7 * at.layers / 8;
    return at.file == LLAMA_FTYPE_MOSTLY_IQ3_XS && middle ? GGML_TYPE_IQ3_XXS : at.base;
}

ggml_type wanted_type(const Place& at, const ModelShape& shape, const TensorSpec& tensor) {
    const bool is_output = tensor.role == TensorRole::output || (shape.tied && tensor.role == TensorRole::embedding);
    if (is_output) return output_type(at, tensor.row);
    if (at.file == LLAMA_FTYPE_MOSTLY_MXFP4_MOE) return tensor.experts > 1 ? GGML_TYPE_MXFP4 : GGML_TYPE_Q8_0;
    switch (tensor.role) {
        case TensorRole::embedding:
            return embedding_type(at);
        case TensorRole::value:
            return value_type(at);
        case TensorRole::down:
            return down_type(at);
        case TensorRole::attention_output:
            return attention_output_type(at);
        case TensorRole::query:
        case TensorRole::key:
            return query_key_type(at);
        case TensorRole::gate:
        case TensorRole::up:
            return gate_up_type(at);
        default:
            return at.base;
    }
}

// A row must be whole blocks: else a type of smaller blocks and about as many bits.
ggml_type fitting_type(ggml_type wanted, uint64_t row) {
    const auto fits = [row](ggml_type type) { return row % static_cast<uint64_t>(ggml_blck_size(type)) == 0; };
    if (fits(wanted)) return wanted;
    ggml_type smaller = wanted;
    switch (wanted) {
        case GGML_TYPE_IQ1_S:
        case GGML_TYPE_IQ1_M:
        case GGML_TYPE_IQ2_XXS:
        case GGML_TYPE_IQ2_XS:
        case GGML_TYPE_IQ2_S:
        case GGML_TYPE_IQ3_XXS:
        case GGML_TYPE_IQ3_S:
        case GGML_TYPE_IQ4_XS:
            smaller = GGML_TYPE_IQ4_NL;
            break;
        case GGML_TYPE_Q2_0:
        case GGML_TYPE_Q2_K:
        case GGML_TYPE_Q3_K:
        case GGML_TYPE_TQ1_0:
        case GGML_TYPE_TQ2_0:
            smaller = GGML_TYPE_Q4_0;
            break;
        case GGML_TYPE_Q4_K:
            smaller = GGML_TYPE_Q5_0;
            break;
        case GGML_TYPE_Q5_K:
            smaller = GGML_TYPE_Q5_1;
            break;
        case GGML_TYPE_Q6_K:
            smaller = GGML_TYPE_Q8_0;
            break;
        default:
            break;
    }
    return fits(smaller) ? smaller : GGML_TYPE_F16;
}

}  // namespace

const std::vector<FileType>& file_types() {
    static const std::vector<FileType> types = {
        {"F32", LLAMA_FTYPE_ALL_F32, GGML_TYPE_F32},
        {"F16", LLAMA_FTYPE_MOSTLY_F16, GGML_TYPE_F16},
        {"BF16", LLAMA_FTYPE_MOSTLY_BF16, GGML_TYPE_BF16},
        {"Q1_0", LLAMA_FTYPE_MOSTLY_Q1_0, GGML_TYPE_Q1_0},
        {"Q2_0", LLAMA_FTYPE_MOSTLY_Q2_0, GGML_TYPE_Q2_0},
        {"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0, GGML_TYPE_Q4_0},
        {"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1, GGML_TYPE_Q4_1},
        {"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0, GGML_TYPE_Q5_0},
        {"Q5_1", LLAMA_FTYPE_MOSTLY_Q5_1, GGML_TYPE_Q5_1},
        {"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0, GGML_TYPE_Q8_0},
        {"Q2_K", LLAMA_FTYPE_MOSTLY_Q2_K, GGML_TYPE_Q2_K},
        {"Q2_K_S", LLAMA_FTYPE_MOSTLY_Q2_K_S, GGML_TYPE_Q2_K},
        {"Q3_K_S", LLAMA_FTYPE_MOSTLY_Q3_K_S, GGML_TYPE_Q3_K},
        {"Q3_K_M", LLAMA_FTYPE_MOSTLY_Q3_K_M, GGML_TYPE_Q3_K},
        {"Q3_K_L", LLAMA_FTYPE_MOSTLY_Q3_K_L, GGML_TYPE_Q3_K},
        {"Q4_K_S", LLAMA_FTYPE_MOSTLY_Q4_K_S, GGML_TYPE_Q4_K},
        {"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M, GGML_TYPE_Q4_K},
        {"Q5_K_S", LLAMA_FTYPE_MOSTLY_Q5_K_S, GGML_TYPE_Q5_K},
        {"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M, GGML_TYPE_Q5_K},
        {"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K, GGML_TYPE_Q6_K},
        {"IQ1_S", LLAMA_FTYPE_MOSTLY_IQ1_S, GGML_TYPE_IQ1_S},
        {"IQ1_M", LLAMA_FTYPE_MOSTLY_IQ1_M, GGML_TYPE_IQ1_M},
        {"IQ2_XXS", LLAMA_FTYPE_MOSTLY_IQ2_XXS, GGML_TYPE_IQ2_XXS},
        {"IQ2_XS", LLAMA_FTYPE_MOSTLY_IQ2_XS, GGML_TYPE_IQ2_XS},
        {"IQ2_S", LLAMA_FTYPE_MOSTLY_IQ2_S, GGML_TYPE_IQ2_XS},
        {"IQ2_M", LLAMA_FTYPE_MOSTLY_IQ2_M, GGML_TYPE_IQ2_S},
        {"IQ3_XXS", LLAMA_FTYPE_MOSTLY_IQ3_XXS, GGML_TYPE_IQ3_XXS},
        {"IQ3_XS", LLAMA_FTYPE_MOSTLY_IQ3_XS, GGML_TYPE_IQ3_S},
        {"IQ3_S", LLAMA_FTYPE_MOSTLY_IQ3_S, GGML_TYPE_IQ3_S},
        {"IQ3_M", LLAMA_FTYPE_MOSTLY_IQ3_M, GGML_TYPE_IQ3_S},
        {"IQ4_NL", LLAMA_FTYPE_MOSTLY_IQ4_NL, GGML_TYPE_IQ4_NL},
        {"IQ4_XS", LLAMA_FTYPE_MOSTLY_IQ4_XS, GGML_TYPE_IQ4_XS},
        {"TQ1_0", LLAMA_FTYPE_MOSTLY_TQ1_0, GGML_TYPE_TQ1_0},
        {"TQ2_0", LLAMA_FTYPE_MOSTLY_TQ2_0, GGML_TYPE_TQ2_0},
        {"MXFP4_MOE", LLAMA_FTYPE_MOSTLY_MXFP4_MOE, GGML_TYPE_MXFP4},
    };
    return types;
}

const FileType* find_file_type(std::string_view name) {
    const auto same = [name](const FileType& type) {
        return std::ranges::equal(type.name, name, [](char a, char b) {
            return a == static_cast<char>(std::toupper(static_cast<unsigned char>(b)));
        });
    };
    const auto found = std::ranges::find_if(file_types(), same);
    return found == file_types().end() ? nullptr : &*found;
}

ggml_type tensor_type(const FileType& file, const ModelShape& shape, const TensorSpec& tensor, bool importance) {
    if (tensor.role == TensorRole::vector || tensor.role == TensorRole::router) return GGML_TYPE_F32;
    if (!ggml_is_quantized(file.base)) return file.base;
    Place at{};
    at.file = file.number;
    at.base = file.base;
    at.layer = static_cast<int>(tensor.layer);
    at.layers = static_cast<int>(shape.layers);
    at.shared_kv = shape.queries_per_kv() >= 4;
    at.experts = shape.experts >= 4;
    at.importance = importance;
    return fitting_type(wanted_type(at, shape, tensor), tensor.row);
}

bool made_with_importance(const FileType& file) {
    return is_low(file.number) ||
           one_of(file.number, LLAMA_FTYPE_MOSTLY_IQ3_XXS, LLAMA_FTYPE_MOSTLY_IQ3_XS, LLAMA_FTYPE_MOSTLY_Q2_K_S);
}

}  // namespace onebit
