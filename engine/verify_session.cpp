#include "engine/verify_session.h"

#include <map>

#include "ggml-backend.h"

namespace onebit {

Result<ggml_type> cache_type(const char* flag, const std::string& name) {
    static const std::map<std::string, ggml_type> types = {
        {"f32", GGML_TYPE_F32},   {"f16", GGML_TYPE_F16},   {"bf16", GGML_TYPE_BF16},
        {"q8_0", GGML_TYPE_Q8_0}, {"q4_0", GGML_TYPE_Q4_0}, {"q4_1", GGML_TYPE_Q4_1},
        {"q5_0", GGML_TYPE_Q5_0}, {"q5_1", GGML_TYPE_Q5_1}, {"iq4_nl", GGML_TYPE_IQ4_NL},
    };
    const auto found = types.find(name);
    if (found != types.end()) return found->second;
    std::string known;
    for (const auto& [one, type] : types) known += (known.empty() ? "" : ", ") + one;
    return Error{ErrorCode::usage, flag, "one of " + known, "'" + name + "'", ""};
}

llama_flash_attn_type flash_attention_type(const std::string& word) {
    return word == "on"    ? LLAMA_FLASH_ATTN_TYPE_ENABLED
           : word == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                           : LLAMA_FLASH_ATTN_TYPE_AUTO;
}

Result<std::unique_ptr<VerifySession>> VerifySession::load(const std::string& model_file,
                                                           const std::vector<std::string>& devices) {
    std::unique_ptr<VerifySession> session(new VerifySession);
    std::vector<ggml_backend_dev_t> chosen;
    for (const std::string& name : devices) {
        ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
        if (device == nullptr) {
            return Error{ErrorCode::not_found, "device '" + name + "'", "a ggml device name", "none such",
                         "see 1bit devices"};
        }
        if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) chosen.push_back(device);
        session->devices_ += (session->devices_.empty() ? "" : ",") + name;
    }
    llama_model_params parameters = llama_model_default_params();
    parameters.n_gpu_layers = chosen.empty() ? 0 : -1;
    chosen.push_back(nullptr);
    parameters.devices = chosen.data();
    session->model_.reset(llama_model_load_from_file(model_file.c_str(), parameters));
    if (!session->model_) {
        return Error{ErrorCode::invalid, model_file, "a model that llama.cpp can load on " + session->devices_, "",
                     "1bit plan shows the memory that it needs"};
    }
    return session;
}

Result<void> VerifySession::open(const VerifyContext& context) {
    context_.reset();
    llama_context_params parameters = llama_context_default_params();
    // 256 is llama.cpp's padding of a slot's cache
    const uint32_t tokens = (context.tokens + 255) / 256 * 256;
    parameters.n_ctx = tokens * context.slots;
    parameters.n_seq_max = context.slots;
    parameters.n_batch = context.batch;
    parameters.n_ubatch = context.ubatch;
    parameters.n_outputs_max = parameters.n_outputs_max_per_seq = context.slots;
    parameters.n_threads = parameters.n_threads_batch = static_cast<int32_t>(context.threads);
    parameters.type_k = context.type_k;
    parameters.type_v = context.type_v;
    parameters.flash_attn_type = context.flash_attention;
    context_.reset(llama_init_from_model(model_.get(), parameters));
    if (context_) return {};
    return Error{ErrorCode::no_space, devices_,
                 std::to_string(context.slots) + " slots of " + std::to_string(tokens) + " tokens", "none",
                 "take smaller --prompt or --slots, or other --cache-type-k, --cache-type-v and --flash-attn"};
}

Result<void> VerifySession::read(std::span<const SlotToken> tokens) {
    const auto count = static_cast<int32_t>(tokens.size());
    llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int32_t i = 0; i < count; i++) {
        const SlotToken& token = tokens[static_cast<size_t>(i)];
        batch.token[i] = token.token;
        batch.pos[i] = token.position;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = token.slot;
        batch.logits[i] = token.scored ? 1 : 0;
    }
    const int result = llama_decode(context_.get(), batch);
    llama_batch_free(batch);
    llama_synchronize(context_.get());
    if (result == 0) return {};
    return Error{ErrorCode::internal, devices_, "llama_decode to succeed",
                 "code " + std::to_string(result) + " for " + std::to_string(count) + " tokens",
                 "--verbose shows llama.cpp's own lines"};
}

std::span<const float> VerifySession::logits(size_t place) const {
    const float* values = llama_get_logits_ith(context_.get(), static_cast<int32_t>(place));
    if (values == nullptr) return {};
    return {values, static_cast<size_t>(llama_vocab_n_tokens(vocab()))};
}

void VerifySession::clear() { llama_memory_clear(llama_get_memory(context_.get()), false); }

}  // namespace onebit
