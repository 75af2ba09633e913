#include "engine/tune.h"

#include <algorithm>
#include <memory>

#include "common.h"
#include "engine/llama_log.h"
#include "engine/route_meter.h"
#include "engine/tandem_device.h"
#include "engine/text_tokens.h"
#include "engine/verify_session.h"
#include "tandem/device.h"

namespace onebit {
namespace {

constexpr uint32_t kUbatchesAtOnce = 4, kTrialUbatches = 4, kTrialTokens = 32;

class Tune {
public:
    explicit Tune(const TuneRequest& request) : request_(request) {}

    Result<TuneReport> run() {
        ONEBIT_RETURN_IF_ERROR(load());
        ONEBIT_RETURN_IF_ERROR(open());
        auto text = text_tokens(session_->vocab(), "");
        if (!text) return std::move(text).error();
        MeterPlan plan;
        plan.members = members_;
        plan.ubatch = context_.ubatch;
        plan.sizes = route_sizes(plan.ubatch);
        plan.ubatches_at_once = context_.batch / context_.ubatch;
        plan.depths = route_depths(context_.tokens, context_.batch);
        plan.rounds = request_.rounds;
        plan.trial_ubatches = std::max(std::min(kTrialUbatches, (context_.tokens - trial_tokens()) / plan.ubatch), 1u);
        plan.trial_tokens = trial_tokens();
        if (members_.size() > 1 && plan.ubatch > 1) plan.trials = {{0, 1}, {1, 0}};
        plan.progress = request_.progress;
        RouteMeter meter(std::move(plan));
        const auto end = meter.run(
            session_->context(), text->tokens, [] { return false; }, std::chrono::steady_clock::time_point::max());
        if (!end) return end.error();
        TuneReport report;
        report.model = request_.model_name.empty() ? request_.model_file : request_.model_name;
        report.table = meter.table();
        report.table.source = "tune";
        auto free = choose_route(report.table, {});
        if (!free) return std::move(free).error();
        report.free = *free;
        auto choice = choose_route(report.table, request_.wish);
        if (!choice) return std::move(choice).error();
        report.choice = *std::move(choice);
        return report;
    }

private:
    void tell(const std::string& step) const {
        if (request_.progress) request_.progress(step);
    }

    uint32_t trial_tokens() const { return context_.tokens >= context_.ubatch + kTrialTokens ? kTrialTokens : 0; }

    Error with_cause(Error error) const {
        if (error.found.empty() || error.found == "none")
            if (const std::string cause = log_.first_error(); !cause.empty()) error.found = cause;
        return error;
    }

    // The device that holds the model: the tandem of two members, with graphs sent to one or the other by force.
    Result<std::string> make_device() {
        if (request_.members.size() == 1) {
            members_ = request_.members;
            return members_.front();
        }
        auto text = with_owner("prefill=" + request_.members[0] + ",decode=" + request_.members[1]);
        if (!text) return std::move(text).error();
        auto settings = tandem::parse_settings(*text);
        if (!settings) return std::move(settings).error();
        const auto device = tandem::register_tandem(*settings);
        if (!device) return device.error();
        members_ = {settings->owner, settings->owner == settings->prefill ? settings->decode : settings->prefill};
        return std::string(ggml_backend_dev_name(*device));
    }

    Result<void> load() {
        if (request_.members.empty() || request_.members.size() > 2)
            return Error{ErrorCode::usage, "--device", "one device, or two that share memory",
                         std::to_string(request_.members.size()) + " devices", "see 1bit devices"};
        auto type_k = cache_type("--cache-type-k", request_.cache_type_k);
        if (!type_k) return std::move(type_k).error();
        auto type_v = cache_type("--cache-type-v", request_.cache_type_v);
        if (!type_v) return std::move(type_v).error();
        context_.type_k = *type_k;
        context_.type_v = *type_v;
        context_.flash_attention = flash_attention_type(request_.flash_attention);
        context_.threads =
            request_.threads != 0 ? request_.threads : static_cast<uint32_t>(std::max(common_cpu_get_num_math(), 1));
        auto device = make_device();
        if (!device) return std::move(device).error();
        std::string names;
        for (const std::string& member : members_) names += (names.empty() ? "" : " and ") + member;
        tell("loading on " + names);
        auto session = VerifySession::load(request_.model_file, {*device});
        if (!session) return with_cause(std::move(session).error());
        session_ = *std::move(session);
        if (llama_model_has_encoder(session_->model()))
            return Error{ErrorCode::unsupported, request_.model_file, "a model that makes tokens one by one",
                         "one with an encoder", "serve it on one device"};
        return {};
    }

    // The largest context that can be made, so that as many depths as possible are measured.
    Result<void> open() {
        const int32_t trained = llama_model_n_ctx_train(session_->model());
        const uint32_t most = trained > 0 ? static_cast<uint32_t>(trained) : request_.context;
        context_.ubatch = std::min(request_.ubatch, most);
        const uint32_t at_once = ubatches_at_once(members_, kUbatchesAtOnce), whole = at_once * context_.ubatch;
        const uint32_t wanted[] = {8192 + whole, 2048 + whole, context_.ubatch + kTrialTokens};
        Result<void> opened;
        for (const uint32_t tokens : wanted) {
            context_.tokens = std::max(std::min({tokens, most, request_.context}), context_.ubatch);
            context_.batch = std::clamp(context_.tokens / context_.ubatch, 1u, at_once) * context_.ubatch;
            opened = session_->open(context_);
            if (opened) return {};
        }
        return with_cause(std::move(opened).error());
    }

    const TuneRequest& request_;
    LlamaLog log_;
    std::vector<std::string> members_;
    VerifyContext context_;
    std::unique_ptr<VerifySession> session_;
};

}  // namespace

Result<TuneReport> run_tune(const TuneRequest& request) try {
    return Tune(request).run();
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, "tune", "a measurement", error.what(), ""};
}

}  // namespace onebit
