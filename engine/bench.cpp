#include "engine/bench.h"

#include <sys/utsname.h>

#include <algorithm>
#include <thread>

#include "base/hash.h"
#include "build-info.h"
#include "engine/bench_session.h"
#include "engine/devices.h"
#include "engine/llama_log.h"
#include "engine/text_tokens.h"

namespace onebit {
namespace {

constexpr uint32_t largest_batch = 2048;  // of one llama_decode, as in the server
constexpr uint32_t most_scored = 256;     // positions of a window whose logits are kept
constexpr uint32_t least_window = 32;
constexpr uint32_t largest_context = 1u << 24;

using Sessions = std::vector<std::unique_ptr<BenchSession>>;
using Tokens = std::vector<llama_token>;

class Bench {
public:
    explicit Bench(const BenchRequest& request) : request_(request) {}

    Result<BenchReport> run() {
        ONEBIT_RETURN_IF_ERROR(check_sizes());
        ONEBIT_RETURN_IF_ERROR(open());
        ONEBIT_RETURN_IF_ERROR(tokenize());
        // first, so that a warm-up is part of it and nobody waits for speeds of wrong results
        ONEBIT_RETURN_IF_ERROR(compare());
        ONEBIT_RETURN_IF_ERROR(measure());
        ONEBIT_RETURN_IF_ERROR(describe());
        return std::move(report_);
    }

private:
    static uint32_t largest(const std::vector<uint32_t>& values) {
        return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    }
    uint32_t span() const { return std::max({largest(request_.prompts), request_.generate, least_window}); }
    uint32_t context() const { return (largest(request_.depths) + span() + 255) / 256 * 256; }
    void tell(const std::string& step) const {
        if (request_.progress) request_.progress(step);
    }

    Result<void> check_sizes() {
        const auto bad = [](const char* flag, const char* expected, const std::string& found) {
            return Error{ErrorCode::usage, flag, expected, found, ""};
        };
        if (request_.devices.empty()) return bad("--device", "at least one device", "none");
        if (request_.repeat == 0) return bad("--repeat", "1 or more", "0");
        if (request_.ubatch == 0) return bad("--ubatch-size", "1 or more", "0");
        if (std::ranges::find(request_.prompts, 0u) != request_.prompts.end()) return bad("--prompt", "1 or more", "0");
        if (request_.prompts.empty() && request_.generate == 0) return bad("--prompt", "at least one size", "none");
        if (request_.depths.empty()) return bad("--depth", "at least one depth", "none");
        for (const uint32_t depth : request_.depths) {
            if (depth > largest_context) return bad("--depth", "at most 16777216", std::to_string(depth));
        }
        if (span() > largest_context) return bad("--prompt", "at most 16777216 tokens", std::to_string(span()));
        return {};
    }

    Result<void> open() {
        std::vector<std::string> names = request_.devices;
        const bool cpu_measured = std::ranges::find(names, "CPU") != names.end();
        if (!cpu_measured && request_.check_tokens != 0) names.push_back("CPU");
        SessionOptions options;
        options.model_file = request_.model_file;
        options.needed = largest(request_.depths) + span();
        options.context = context();
        options.batch = std::min(largest_batch, context());
        options.ubatch = std::min(request_.ubatch, options.batch);
        options.threads = request_.threads != 0 ? request_.threads : std::max(1u, std::thread::hardware_concurrency());
        options.outputs = std::min(most_scored, options.batch);
        options_ = options;
        for (const std::string& name : names) {
            tell("loading on " + name);
            options.device = name;
            auto session = BenchSession::open(options);
            if (!session.ok()) {
                Error error = std::move(session).error();
                if (error.found.empty()) error.found = log_.first_error();
                return error;
            }
            sessions_.push_back(std::move(*session));
        }
        const auto cpu = std::ranges::find_if(sessions_, [](const auto& one) { return one->device() == "CPU"; });
        reference_ = cpu == sessions_.end() ? nullptr : cpu->get();
        if (!cpu_measured)
            measured_ = sessions_.size() - (request_.check_tokens != 0 ? 1 : 0);
        else
            measured_ = sessions_.size();
        return {};
    }

    Result<void> tokenize() {
        auto text = text_tokens(sessions_.front()->vocab(), request_.text);
        if (!text.ok()) return std::move(text).error();
        tokens_ = std::move(text->tokens);
        begin_ = text->begin;
        return {};
    }

    // `count` tokens of the text from a place on, going round.
    Tokens take(size_t from, size_t count) const {
        Tokens taken(count);
        for (size_t i = 0; i < count; i++) taken[i] = tokens_[(from + i) % tokens_.size()];
        return taken;
    }

    Result<void> compare() {
        if (request_.check_tokens == 0) return {};
        const uint32_t window =
            static_cast<uint32_t>(std::min<uint64_t>(largest(request_.depths) + span(), tokens_.size()));
        const uint32_t scored = std::max(1u, std::min({window / 2, most_scored, request_.check_tokens}));
        const uint32_t windows = (request_.check_tokens + scored - 1) / scored;
        report_.checked_window = window;
        std::vector<ComparisonSum> sums(sessions_.size());
        for (uint32_t w = 0; w < windows; w++) {
            tell("comparing with the CPU, window " + std::to_string(w + 1) + " of " + std::to_string(windows));
            const size_t room = tokens_.size() - window;
            Tokens tokens = take(windows > 1 ? room * w / (windows - 1) : 0, window);
            if (begin_ != LLAMA_TOKEN_NULL) tokens[0] = begin_;
            ONEBIT_RETURN_IF_ERROR(compare_window(tokens, scored, sums));
        }
        for (size_t s = 0; s < sessions_.size(); s++) {
            if (sessions_[s].get() == reference_) continue;
            BenchCheck check{sessions_[s]->device(), sums[s].result(), {}};
            check.faults = faults(check.comparison, limits_);
            report_.checks.push_back(std::move(check));
        }
        if (report_.checks.empty()) {
            // the CPU alone: compared with itself it must be right, which still finds NaN
            const size_t s = static_cast<size_t>(
                std::ranges::find_if(sessions_, [this](const auto& one) { return one.get() == reference_; }) -
                sessions_.begin());
            BenchCheck check{"CPU", sums[s].result(), {}};
            check.faults = faults(check.comparison, limits_);
            report_.checks.push_back(std::move(check));
        }
        return {};
    }

    Result<void> compare_window(const Tokens& tokens, uint32_t scored, std::vector<ComparisonSum>& sums) {
        for (auto& session : sessions_) session->clear();
        for (size_t start = 0; start < tokens.size(); start += options_.batch) {
            const size_t count = std::min<size_t>(options_.batch, tokens.size() - start);
            const std::span<const llama_token> piece(tokens.data() + start, count);
            std::vector<bool> marked(count);
            for (size_t i = 0; i < count; i++) {
                const size_t place = start + i;
                // the last token has no next one to be judged by
                marked[i] = place + 1 < tokens.size() && place + 1 + scored >= tokens.size();
            }
            for (auto& session : sessions_) ONEBIT_RETURN_IF_ERROR(session->read(piece, marked));
            for (size_t i = 0; i < count; i++) {
                if (!marked[i]) continue;
                const auto reference = reference_->logits(i);
                const auto next = static_cast<size_t>(tokens[start + i + 1]);
                for (size_t s = 0; s < sessions_.size(); s++) {
                    sums[s].add(compare_logits(reference, sessions_[s]->logits(i), next, limits_.tie_margin));
                }
            }
        }
        return {};
    }

    Result<double> sample(BenchSession& session, const BenchCell& cell) {
        const Tokens tokens = take(cell.depth, cell.tokens);
        return cell.phase == BenchPhase::prefill ? session.time_prefill(tokens) : session.time_decode(tokens);
    }

    // Devices take turns inside each repetition, so that a change of clock or load meets all of them alike.
    Result<void> measure() {
        for (const uint32_t depth : request_.depths) {
            std::vector<BenchCell> plan;
            for (const uint32_t prompt : request_.prompts) plan.push_back({"", BenchPhase::prefill, prompt, depth, {}});
            if (request_.generate != 0) plan.push_back({"", BenchPhase::decode, request_.generate, depth, {}});
            std::vector<BenchCell> cells;
            for (size_t s = 0; s < measured_; s++) {
                tell("filling " + std::to_string(depth) + " tokens and warming up on " + sessions_[s]->device());
                ONEBIT_RETURN_IF_ERROR(sessions_[s]->fill(take(0, depth)));
                for (BenchCell cell : plan) {
                    cell.device = sessions_[s]->device();
                    BenchCell warm = cell;
                    if (warm.phase == BenchPhase::decode) warm.tokens = std::min(warm.tokens, 4u);
                    auto seconds = sample(*sessions_[s], warm);
                    if (!seconds.ok()) return std::move(seconds).error();
                    cells.push_back(std::move(cell));
                }
            }
            for (uint32_t r = 0; r < request_.repeat; r++) {
                tell("depth " + std::to_string(depth) + ", repetition " + std::to_string(r + 1) + " of " +
                     std::to_string(request_.repeat));
                for (size_t p = 0; p < plan.size(); p++) {
                    for (size_t s = 0; s < measured_; s++) {
                        BenchCell& cell = cells[s * plan.size() + p];
                        auto seconds = sample(*sessions_[s], cell);
                        if (!seconds.ok()) return std::move(seconds).error();
                        cell.samples.push_back(cell.tokens / std::max(*seconds, 1e-9));
                    }
                }
            }
            std::move(cells.begin(), cells.end(), std::back_inserter(report_.cells));
        }
        return {};
    }

    Result<void> describe() {
        report_.model = request_.model_name.empty() ? request_.model_file : request_.model_name;
        report_.devices = request_.devices;
        const auto digest = sha256_file(request_.model_file);
        if (!digest.ok()) return digest.error();
        const auto add = [this](const char* key, const std::string& value) {
            report_.conditions.emplace_back(key, value);
        };
        add("model", report_.model);
        add(request_.model_files > 1 ? "SHA-256 of the first shard" : "SHA-256", to_hex(*digest));
        add("llama.cpp", llama_build_info());
        add("compiler", llama_compiler());
        utsname system{};
        if (uname(&system) == 0)
            add("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
        auto devices = list_devices();
        for (const std::string& name : request_.devices) {
            std::string driver;
            if (devices.ok()) {
                for (const PhysicalDevice& device : *devices) {
                    for (const BackendView& view : device.backends) {
                        if (view.id.name == name && !view.driver.empty()) driver = ", " + view.driver;
                    }
                }
            }
            add("device", (devices.ok() ? device_line(*devices, name) : name) + driver);
        }
        add("threads", std::to_string(options_.threads));
        add("batch", std::to_string(options_.batch));
        add("ubatch", std::to_string(options_.ubatch));
        add("context", std::to_string(options_.context));
        add("flash attention", "auto: where the device has it");
        add("KV cache", "f16 keys, f16 values");
        add("repetitions", std::to_string(request_.repeat) + ", devices in turns, after a warm-up");
        add("text", request_.text.empty() ? "held-out text of the built-in model" : "given by --text");
        return {};
    }

    const BenchRequest& request_;
    const ComparisonLimits limits_;
    LlamaLog log_;
    SessionOptions options_;
    Sessions sessions_;
    BenchSession* reference_ = nullptr;
    size_t measured_ = 0;  // the first sessions; a CPU that is only the reference comes after them
    Tokens tokens_;
    llama_token begin_ = LLAMA_TOKEN_NULL;
    BenchReport report_;
};

}  // namespace

Result<BenchReport> run_bench(const BenchRequest& request) try {
    return Bench(request).run();
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, "bench", "a measurement", error.what(), ""};
}

}  // namespace onebit
