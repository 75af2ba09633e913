// One model on one choice of devices, reading the tokens of several slots: what verify compares.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llama.h"

namespace onebit {

struct SlotToken {
    llama_token token = 0;
    llama_pos position = 0;
    llama_seq_id slot = 0;
    bool scored = false;  // its logits will be asked for
};

struct VerifyContext {
    uint32_t slots = 1;
    uint32_t tokens = 0;  // of one slot
    uint32_t batch = 0, ubatch = 0, threads = 0;
    ggml_type type_k = GGML_TYPE_F16, type_v = GGML_TYPE_F16;
    llama_flash_attn_type flash_attention = LLAMA_FLASH_ATTN_TYPE_AUTO;
};

// Only types that llama.cpp's caches can have. Error usage names the flag.
Result<ggml_type> cache_type(const char* flag, const std::string& name);

// "on", "off", and auto for any other word.
llama_flash_attn_type flash_attention_type(const std::string& word);

class VerifySession {
public:
    // devices: ggml names. Error not_found for one that is not there, invalid for the model.
    static Result<std::unique_ptr<VerifySession>> load(const std::string& model_file,
                                                       const std::vector<std::string>& devices);

    // A new, empty context in place of the old one. Error no_space when it cannot be made.
    Result<void> open(const VerifyContext& context);

    // Reads at most a batch of tokens. Their logits can be asked for by their place, until the next read().
    Result<void> read(std::span<const SlotToken> tokens);
    std::span<const float> logits(size_t place) const;
    void clear();

    const llama_model* model() const { return model_.get(); }
    const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
    llama_context* context() const { return context_.get(); }
    const std::string& devices() const { return devices_; }

private:
    struct Free {
        void operator()(llama_model* model) const { llama_model_free(model); }
        void operator()(llama_context* context) const { llama_free(context); }
    };
    VerifySession() = default;

    std::string devices_;
    std::unique_ptr<llama_model, Free> model_;
    std::unique_ptr<llama_context, Free> context_;
};

}  // namespace onebit
