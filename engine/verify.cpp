#include "engine/verify.h"
#include "engine/text_tokens.h"

#include <algorithm>
#include <ranges>
#include <thread>

#include "base/hash.h"
#include "build-info.h"
#include "engine/bench.h"
#include "engine/llama_log.h"
#include "engine/verify_session.h"
#include "ggml.h"

namespace onebit {
namespace {

constexpr uint32_t largest_batch = 2048;  // of one llama_decode, as in the server
constexpr uint32_t largest_prompt = 1u << 24, most_slots = 64, most_generated = 1u << 16;
constexpr uint32_t slot_distance = 997;  // tokens of the text between the starts of two slots

using Tokens = std::vector<llama_token>;

// The sums of one case: the tested side and the third, each against the reference.
struct CaseSums {
    ComparisonSum tested, third;
    uint64_t different = 0;
    std::optional<VerifyDivergence> first;
};

class Verify {
public:
    explicit Verify(const VerifyRequest& request) : request_(request) {}

    Result<VerifyReport> run() {
        ONEBIT_RETURN_IF_ERROR(check_sizes());
        ONEBIT_RETURN_IF_ERROR(load());
        ONEBIT_RETURN_IF_ERROR(choose_prompts());
        ONEBIT_RETURN_IF_ERROR(tokenize());
        std::vector<MemberTokens> start = counters();
        uint64_t submitted = 0;
        for (const uint32_t slots : request_.slots) {
            ONEBIT_RETURN_IF_ERROR(open(slots));
            // the longest first: no buffer has to be replaced for the others (lavapipe 22.3 ends in a fault then)
            for (const uint32_t prompt : std::views::reverse(prompts_)) {
                auto one = run_case(prompt, slots);
                if (!one.ok()) return std::move(one).error();
                submitted += one->submitted;
                report_.cases.push_back(std::move(*one));
            }
            std::reverse(report_.cases.end() - static_cast<ptrdiff_t>(prompts_.size()), report_.cases.end());
        }
        if (request_.third) report_.usual = usual_.result();
        for (VerifyCase& one : report_.cases) one.faults = verify_faults(one, report_.usual, request_.limits);
        report_.tokens = tokens_between(start, counters());
        report_.faults = split_faults(request_.tested, report_.tokens, submitted);
        ONEBIT_RETURN_IF_ERROR(describe());
        return std::move(report_);
    }

private:
    void tell(const std::string& step) const {
        if (request_.progress) request_.progress(step);
    }
    std::vector<MemberTokens> counters() const {
        return request_.tested.counters ? request_.tested.counters() : std::vector<MemberTokens>{};
    }
    static uint32_t largest(const std::vector<uint32_t>& values) { return *std::ranges::max_element(values); }

    Result<void> check_sizes() const {
        const auto within = [](const char* flag, uint32_t value, uint32_t most) -> Result<void> {
            if (value >= 1 && value <= most) return {};
            return Error{ErrorCode::usage, flag, "1 to " + std::to_string(most), std::to_string(value), ""};
        };
        if (request_.slots.empty()) return Error{ErrorCode::usage, "--slots", "at least one number", "none", ""};
        for (const uint32_t slots : request_.slots) ONEBIT_RETURN_IF_ERROR(within("--slots", slots, most_slots));
        for (const uint32_t prompt : request_.prompts) {
            if (prompt > largest_prompt) ONEBIT_RETURN_IF_ERROR(within("--prompt", prompt, largest_prompt));
        }
        ONEBIT_RETURN_IF_ERROR(within("--generate", request_.generate, most_generated));
        return within("--ubatch-size", request_.ubatch, largest_prompt);
    }

    Result<void> load() {
        auto type_k = cache_type("--cache-type-k", request_.cache_type_k);
        if (!type_k.ok()) return std::move(type_k).error();
        auto type_v = cache_type("--cache-type-v", request_.cache_type_v);
        if (!type_v.ok()) return std::move(type_v).error();
        context_.type_k = *type_k;
        context_.type_v = *type_v;
        context_.flash_attention = flash_attention_type(request_.flash_attention);
        context_.threads = request_.threads != 0 ? request_.threads : std::max(1u, std::thread::hardware_concurrency());
        devices_ = {&request_.tested, &request_.reference};
        if (request_.third) devices_.push_back(&*request_.third);
        for (const VerifyDevice* device : devices_) {
            tell("loading on " + device->label);
            auto session = VerifySession::load(request_.model_file, device->devices);
            if (!session.ok()) return with_cause(std::move(session).error());
            sessions_.push_back(std::move(*session));
        }
        return {};
    }

    Error with_cause(Error error) const {
        if (error.found.empty() || error.found == "none") {
            if (const std::string cause = log_.first_error(); !cause.empty()) error.found = cause;
        }
        return error;
    }

    // Edges past the model's context are left out, and said; a length that was asked for is an error there.
    Result<void> choose_prompts() {
        const bool chosen = !request_.prompts.empty();
        prompts_ = chosen ? request_.prompts
                          : verify_edges(request_.ubatch, request_.tested.prefill_min_tokens, request_.beyond_4096);
        for (uint32_t& prompt : prompts_) prompt = std::max(prompt, 1u);
        std::ranges::sort(prompts_);
        prompts_.erase(std::unique(prompts_.begin(), prompts_.end()), prompts_.end());
        const int32_t trained = llama_model_n_ctx_train(sessions_.front()->model());
        if (trained <= 0) return {};
        const auto fits = [&](uint32_t prompt) {
            return uint64_t{prompt} + request_.generate + 1 <= static_cast<uint64_t>(trained);
        };
        if (fits(prompts_.back())) return {};
        if (chosen || !fits(prompts_.front())) {
            return Error{ErrorCode::usage, "--prompt",
                         "with --generate at most the model's context of " + std::to_string(trained) + " tokens",
                         std::to_string(uint64_t{prompts_.back()} + request_.generate + 1), "take smaller ones"};
        }
        const size_t all = prompts_.size();
        std::erase_if(prompts_, [&](uint32_t prompt) { return !fits(prompt); });
        tell(std::to_string(all - prompts_.size()) + " lengths of prompts are left out: the model's context is " +
             std::to_string(trained) + " tokens");
        return {};
    }

    Result<void> tokenize() {
        auto text = text_tokens(sessions_.front()->vocab(), request_.text);
        if (!text.ok()) return std::move(text).error();
        tokens_ = std::move(text->tokens);
        begin_ = text->begin;
        return {};
    }

    Result<void> open(uint32_t slots) {
        context_.slots = slots;
        context_.tokens = prompts_.back() + request_.generate + 1;
        context_.batch = std::max(std::min(largest_batch, context_.tokens * slots), slots);
        context_.ubatch = std::min(request_.ubatch, context_.batch);
        for (auto& session : sessions_) {
            if (auto opened = session->open(context_); !opened.ok()) return with_cause(std::move(opened).error());
        }
        return {};
    }

    // The token of a slot at a position: each slot reads another part of the text, going round.
    llama_token token_at(uint32_t slot, size_t position) const {
        if (position == 0 && begin_ != LLAMA_TOKEN_NULL) return begin_;
        return tokens_[(size_t{slot} * slot_distance + position) % tokens_.size()];
    }

    // All sides read the same tokens; what is marked is compared.
    Result<void> read(std::span<const SlotToken> tokens, uint32_t prompt, CaseSums& sums) {
        for (auto& session : sessions_) {
            if (auto done = session->read(tokens); !done.ok()) return with_cause(std::move(done).error());
        }
        const double margin = request_.limits.tie_margin;
        for (size_t i = 0; i < tokens.size(); i++) {
            if (!tokens[i].scored) continue;
            const auto slot = static_cast<uint32_t>(tokens[i].slot);
            const auto position = static_cast<uint32_t>(tokens[i].position);
            const auto next = static_cast<size_t>(token_at(slot, position + 1));
            const auto reference = sessions_[1]->logits(i);
            const TokenComparison compared = compare_logits(reference, sessions_[0]->logits(i), next, margin);
            sums.tested.add(compared);
            if (compared.finite && !compared.tie && !compared.same_top) {
                sums.different++;
                if (!sums.first) sums.first = VerifyDivergence{slot, position + 1 - prompt};
            }
            if (sessions_.size() > 2) {
                const TokenComparison third = compare_logits(reference, sessions_[2]->logits(i), next, margin);
                sums.third.add(third);
                usual_.add(third);
            }
        }
        return {};
    }

    Result<VerifyCase> run_case(uint32_t prompt, uint32_t slots) {
        tell("prompt of " + std::to_string(prompt) + " tokens, " + std::to_string(slots) +
             (slots == 1 ? " slot" : " slots"));
        VerifyCase one;
        one.prompt = prompt;
        one.slots = slots;
        CaseSums sums;
        const std::vector<MemberTokens> before = counters();
        for (auto& session : sessions_) session->clear();
        std::vector<SlotToken> batch;
        for (uint32_t slot = 0; slot < slots; slot++) {
            for (uint32_t position = 0; position < prompt; position++) {
                batch.push_back({token_at(slot, position), static_cast<llama_pos>(position),
                                 static_cast<llama_seq_id>(slot), position + 1 == prompt});
                const bool last = slot + 1 == slots && position + 1 == prompt;
                if (batch.size() < context_.batch && !last) continue;
                ONEBIT_RETURN_IF_ERROR(read(batch, prompt, sums));
                one.submitted += batch.size();
                batch.clear();
            }
        }
        damage(slots);
        for (uint32_t step = 0; step < request_.generate; step++) {
            const uint32_t position = prompt + step;
            for (uint32_t slot = 0; slot < slots; slot++) {
                batch.push_back({token_at(slot, position), static_cast<llama_pos>(position),
                                 static_cast<llama_seq_id>(slot), true});
            }
            ONEBIT_RETURN_IF_ERROR(read(batch, prompt, sums));
            one.submitted += batch.size();
            batch.clear();
        }
        one.tested = sums.tested.result();
        if (sessions_.size() > 2) one.third = sums.third.result();
        one.different = sums.different;
        one.first_divergence = sums.first;
        one.tokens = tokens_between(before, counters());
        return one;
    }

    void damage(uint32_t slots) const {
        for (size_t side = 0; side < devices_.size(); side++) {
            if (!devices_[side]->damage) continue;
            for (uint32_t slot = 0; slot < slots; slot++) devices_[side]->damage(slot, sessions_[side]->context());
        }
    }

    Result<void> describe() {
        report_.model = request_.model_name.empty() ? request_.model_file : request_.model_name;
        report_.tested = request_.tested.label;
        report_.reference = request_.reference.label;
        if (request_.third) report_.third = request_.third->label;
        report_.limits = request_.limits;
        report_.split = request_.tested.split;
        const auto digest = sha256_file(request_.model_file);
        if (!digest.ok()) return digest.error();
        const auto add = [this](const char* key, const std::string& value) {
            report_.conditions.emplace_back(key, value);
        };
        add("model", report_.model);
        add("SHA-256", to_hex(*digest));
        add("llama.cpp", llama_build_info());
        add("threads", std::to_string(context_.threads));
        add("batch", std::to_string(context_.batch));
        add("ubatch", std::to_string(context_.ubatch));
        add("flash attention", request_.flash_attention);
        add("KV cache", request_.cache_type_k + " keys, " + request_.cache_type_v + " values");
        add("tokens after the prompt", std::to_string(request_.generate));
        add("text", request_.text.empty() ? "held-out text of the built-in model" : "given by --text");
        return {};
    }

    const VerifyRequest& request_;
    LlamaLog log_;
    std::vector<const VerifyDevice*> devices_;
    std::vector<std::unique_ptr<VerifySession>> sessions_;  // tested, reference, third
    ComparisonSum usual_;
    VerifyContext context_;
    std::vector<uint32_t> prompts_;
    Tokens tokens_;
    llama_token begin_ = LLAMA_TOKEN_NULL;
    VerifyReport report_;
};

}  // namespace

Result<VerifyReport> run_verify(const VerifyRequest& request) try {
    return Verify(request).run();
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, "verify", "a comparison", error.what(), ""};
}

}  // namespace onebit
