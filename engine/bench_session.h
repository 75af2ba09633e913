// One model on one device with a context, as bench times it and compares it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llama.h"

namespace onebit {

struct SessionOptions {
    std::string model_file, device;
    uint32_t needed = 0;   // tokens that will be in the cache; error usage when the model was not made for so many
    uint32_t context = 0;  // not less
    uint32_t batch = 0, ubatch = 0, threads = 0, outputs = 0;
};

class BenchSession {
public:
    static Result<std::unique_ptr<BenchSession>> open(const SessionOptions& options);

    const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
    const std::string& device() const { return device_; }

    // Empties the cache and fills it with these tokens; the timed calls below start from there.
    Result<void> fill(std::span<const llama_token> tokens);
    // Seconds for reading `tokens` at once, or one by one; the cache is as after fill() when they return.
    Result<double> time_prefill(std::span<const llama_token> tokens);
    Result<double> time_decode(std::span<const llama_token> tokens);

    // For comparing: empties the cache, then reads pieces in order. The logits of marked positions of the last piece
    // can be asked for by their place in it.
    void clear();
    Result<void> read(std::span<const llama_token> tokens, const std::vector<bool>& marked);
    std::span<const float> logits(size_t place) const;

private:
    struct FreeModel {
        void operator()(llama_model* model) const { llama_model_free(model); }
    };
    struct FreeContext {
        void operator()(llama_context* context) const { llama_free(context); }
    };
    BenchSession() = default;
    Result<void> decode(std::span<const llama_token> tokens, const std::vector<bool>* marked);
    Result<void> rewind();

    std::string device_;
    uint32_t batch_ = 0;
    size_t position_ = 0;
    std::vector<llama_token> filled_;
    std::unique_ptr<llama_model, FreeModel> model_;
    std::unique_ptr<llama_context, FreeContext> context_;
};

}  // namespace onebit
