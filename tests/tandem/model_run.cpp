#include "tests/tandem/model_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>

#include "ggml-backend.h"
#include "models/builtin_model.h"
#include "tandem/device.h"

namespace onebit::tandem {
namespace {

struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(llama_context* context) const { llama_free(context); }
};

std::vector<llama_token> text(int count, int vocabulary, uint32_t seed) {
    std::vector<llama_token> tokens(static_cast<size_t>(count));
    for (auto& token : tokens) {
        seed = seed * 1664525u + 1013904223u;
        token = static_cast<llama_token>((seed >> 9) % static_cast<uint32_t>(vocabulary));
    }
    return tokens;
}

}  // namespace

ggml_backend_dev_t device_of(const std::string& choice) {
    if (choice.find('=') == std::string::npos) {
        ggml_backend_dev_t device = ggml_backend_dev_by_name(choice.c_str());
        if (device == nullptr) throw std::runtime_error("no device " + choice);
        return device;
    }
    static std::map<std::string, ggml_backend_dev_t> made;
    auto& device = made[choice];
    if (device == nullptr) {
        auto settings = parse_settings(choice);
        if (!settings) throw std::runtime_error(settings.error().message());
        auto tandem = register_tandem(*settings);
        if (!tandem) throw std::runtime_error(tandem.error().message());
        device = *tandem;
    }
    return device;
}

ModelRun run_model(const std::string& choice, const RunOptions& options) {
    static const bool quiet = [] {
        llama_log_set(
            [](ggml_log_level level, const char* line, void*) {
                if (level == GGML_LOG_LEVEL_ERROR) std::fputs(line, stderr);
            },
            nullptr);
        return true;
    }();
    (void)quiet;
    ModelRun run;
    run.failed = true;
    ggml_backend_dev_t devices[] = {device_of(choice), nullptr};
    llama_model_params model_parameters = llama_model_default_params();
    model_parameters.devices = devices;
    model_parameters.n_gpu_layers = 999;
    model_parameters.use_extra_bufts = false;  // a repacked copy of the weights would compute in another order
    const std::string file = options.model.empty() ? builtin_model().value().string() : options.model;
    const std::unique_ptr<llama_model, Free> model(llama_model_load_from_file(file.c_str(), model_parameters));
    if (model == nullptr) return run;
    llama_context_params parameters = llama_context_default_params();
    const int length = options.prompt + options.answer;
    parameters.n_ctx = static_cast<uint32_t>((length + 8) * options.sequences);
    if (options.cache_bytes != 0) {
        const auto width = static_cast<uint64_t>(llama_model_n_embd(model.get()) / llama_model_n_head(model.get()) *
                                                 llama_model_n_head_kv(model.get()));
        const uint64_t token_bytes = ggml_row_size(options.cache, static_cast<int64_t>(width)) * 2 *
                                     static_cast<uint64_t>(llama_model_n_layer(model.get()));
        parameters.n_ctx = static_cast<uint32_t>(options.cache_bytes / token_bytes + 256);
    }
    parameters.n_batch = static_cast<uint32_t>(std::max(length, 64) * options.sequences);
    parameters.n_ubatch = options.ubatch;
    parameters.n_seq_max = static_cast<uint32_t>(options.sequences);
    parameters.n_threads = parameters.n_threads_batch = 1;
    parameters.flash_attn_type =
        options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    parameters.type_k = parameters.type_v = options.cache;
    if (options.callback)
        parameters.cb_eval = [](ggml_tensor* node, bool asks, void*) { return !asks || node->op == GGML_OP_RMS_NORM; };
    const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), parameters));
    if (context == nullptr) return run;

    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    llama_batch batch = llama_batch_init(static_cast<int32_t>(parameters.n_batch), 0, options.sequences);
    const auto free_batch =
        std::unique_ptr<llama_batch, void (*)(llama_batch*)>(&batch, [](llama_batch* b) { llama_batch_free(*b); });
    const auto add = [&](llama_token token, int position, int sequence, bool wanted) {
        const int i = batch.n_tokens++;
        batch.token[i] = token;
        batch.pos[i] = position;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = sequence;
        batch.logits[i] = wanted;
    };
    const auto step = [&] {
        if (llama_decode(context.get(), batch) != 0) return false;
        for (int s = 0, row = 0; s < batch.n_tokens; ++s)
            if (batch.logits[s]) {
                const float* logits = llama_get_logits_ith(context.get(), s);
                if (logits == nullptr) return false;
                run.logits.emplace_back(logits, logits + vocabulary);
                ++row;
            }
        return true;
    };
    std::vector<std::vector<llama_token>> texts;
    for (int s = 0; s < options.sequences; ++s) texts.push_back(text(length, vocabulary, static_cast<uint32_t>(s) + 3));
    batch.n_tokens = 0;
    for (int s = 0; s < options.sequences; ++s)
        for (int i = 0; i < options.prompt; ++i)
            add(texts[static_cast<size_t>(s)][static_cast<size_t>(i)], i, s, i + 1 == options.prompt);
    if (!step()) return run;
    for (int i = options.prompt; i < length; ++i) {
        batch.n_tokens = 0;
        for (int s = 0; s < options.sequences; ++s)
            add(texts[static_cast<size_t>(s)][static_cast<size_t>(i)], i, s, true);
        if (!step()) return run;
    }
    run.failed = false;
    return run;
}

uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (unsigned long long kib = 0; std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) return kib << 10;
    return 0;
}

double mean_divergence(const ModelRun& reference, const ModelRun& other) {
    double total = 0;
    for (size_t r = 0; r < reference.logits.size(); ++r) {
        const auto& p = reference.logits[r];
        const auto& q = other.logits.at(r);
        const auto log_sum = [](const std::vector<float>& row) {
            const double most = *std::max_element(row.begin(), row.end());
            double sum = 0;
            for (const float value : row) sum += std::exp(static_cast<double>(value) - most);
            return most + std::log(sum);
        };
        const double lp = log_sum(p), lq = log_sum(q);
        for (size_t i = 0; i < p.size(); ++i) total += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
    }
    return total / static_cast<double>(reference.logits.size());
}

bool same_top(const ModelRun& reference, const ModelRun& other, float tie) {
    for (size_t r = 0; r < reference.logits.size(); ++r) {
        const auto& row = reference.logits[r];
        const auto& seen = other.logits.at(r);
        const auto top = std::max_element(seen.begin(), seen.end()) - seen.begin();
        if (*std::max_element(row.begin(), row.end()) - row[static_cast<size_t>(top)] > tie) return false;
    }
    return true;
}

}  // namespace onebit::tandem
