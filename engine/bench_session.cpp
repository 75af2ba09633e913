#include "engine/bench_session.h"

#include <algorithm>
#include <chrono>

#include "ggml-backend.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

Result<std::unique_ptr<BenchSession>> BenchSession::open(const SessionOptions& options) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name(options.device.c_str());
    if (device == nullptr) {
        return Error{ErrorCode::not_found, "device '" + options.device + "'", "a ggml device name", "none such",
                     "see 1bit devices"};
    }
    const bool cpu = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    ggml_backend_dev_t devices[] = {cpu ? nullptr : device, nullptr};
    llama_model_params model = llama_model_default_params();
    model.devices = devices;
    model.n_gpu_layers = cpu ? 0 : -1;
    std::unique_ptr<BenchSession> session(new BenchSession);
    session->device_ = options.device;
    session->batch_ = options.batch;
    session->model_.reset(llama_model_load_from_file(options.model_file.c_str(), model));
    if (!session->model_) {
        return Error{ErrorCode::invalid, options.model_file, "a model that llama.cpp can load on " + options.device, "",
                     "1bit plan shows the memory that it needs"};
    }
    const int32_t trained = llama_model_n_ctx_train(session->model_.get());
    if (trained > 0 && options.needed > static_cast<uint32_t>(trained)) {
        return Error{ErrorCode::usage, "--depth and --prompt",
                     "together at most the model's context of " + std::to_string(trained) + " tokens",
                     std::to_string(options.needed), "take smaller ones"};
    }
    llama_context_params context = llama_context_default_params();
    context.n_ctx = options.context;
    context.n_batch = options.batch;
    context.n_ubatch = options.ubatch;
    context.n_outputs_max = context.n_outputs_max_per_seq = options.outputs;
    context.n_threads = context.n_threads_batch = static_cast<int32_t>(options.threads);
    session->context_.reset(llama_init_from_model(session->model_.get(), context));
    if (!session->context_) {
        return Error{ErrorCode::no_space, options.device, "a context of " + std::to_string(options.context) + " tokens",
                     "none", "take smaller --depth and --prompt; 1bit plan shows the memory that it needs"};
    }
    return session;
}

Result<void> BenchSession::decode(std::span<const llama_token> tokens, const std::vector<bool>* marked) {
    llama_batch batch = llama_batch_init(static_cast<int32_t>(std::min<size_t>(batch_, tokens.size())), 0, 1);
    int result = 0;
    for (size_t start = 0; start < tokens.size() && result == 0; start += batch_) {
        const size_t count = std::min<size_t>(batch_, tokens.size() - start);
        batch.n_tokens = static_cast<int32_t>(count);
        for (size_t i = 0; i < count; i++) {
            batch.token[i] = tokens[start + i];
            batch.pos[i] = static_cast<llama_pos>(position_ + start + i);
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = marked != nullptr ? (*marked)[start + i] : start + i + 1 == tokens.size();
        }
        result = llama_decode(context_.get(), batch);
    }
    llama_batch_free(batch);
    llama_synchronize(context_.get());
    position_ += tokens.size();
    if (result == 0) return {};
    return Error{ErrorCode::internal, device_, "llama_decode to succeed",
                 "code " + std::to_string(result) + " for " + std::to_string(tokens.size()) + " tokens",
                 "--verbose shows llama.cpp's own lines"};
}

void BenchSession::clear() {
    llama_memory_clear(llama_get_memory(context_.get()), false);
    position_ = 0;
}

Result<void> BenchSession::fill(std::span<const llama_token> tokens) {
    clear();
    filled_.assign(tokens.begin(), tokens.end());
    if (filled_.empty()) return {};
    return decode(filled_, nullptr);
}

Result<void> BenchSession::rewind() {
    // recurrent models cannot drop a part of what they have read: those read it again
    if (!llama_memory_seq_rm(llama_get_memory(context_.get()), 0, static_cast<llama_pos>(filled_.size()), -1)) {
        const std::vector<llama_token> tokens = filled_;
        return fill(tokens);
    }
    position_ = filled_.size();
    return {};
}

Result<double> BenchSession::time_prefill(std::span<const llama_token> tokens) {
    const auto start = Clock::now();
    ONEBIT_RETURN_IF_ERROR(decode(tokens, nullptr));
    const double seconds = seconds_since(start);
    ONEBIT_RETURN_IF_ERROR(rewind());
    return seconds;
}

Result<double> BenchSession::time_decode(std::span<const llama_token> tokens) {
    const auto start = Clock::now();
    for (const llama_token& token : tokens) ONEBIT_RETURN_IF_ERROR(decode({&token, 1}, nullptr));
    const double seconds = seconds_since(start);
    ONEBIT_RETURN_IF_ERROR(rewind());
    return seconds;
}

Result<void> BenchSession::read(std::span<const llama_token> tokens, const std::vector<bool>& marked) {
    return decode(tokens, &marked);
}

std::span<const float> BenchSession::logits(size_t place) const {
    const float* values = llama_get_logits_ith(context_.get(), static_cast<int32_t>(place));
    if (values == nullptr) return {};
    return {values, static_cast<size_t>(llama_vocab_n_tokens(vocab()))};
}

}  // namespace onebit
