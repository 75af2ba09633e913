#include "engine/calibration.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "engine/devices_text.h"
#include "engine/placement_hooks.h"
#include "engine/route_choice.h"
#include "engine/route_meter.h"
#include "engine/route_table.h"
#include "engine/text_tokens.h"
#include "ggml-backend.h"
#include "server/supervisor/heartbeat.h"
#include "tandem/device.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBudget{3000}, kQuiet{1000}, kLook{100};
constexpr uint32_t kDeepest = 2048, kRounds = 2, kUbatchesAtOnce = 2, kTrialUbatches = 2, kTrialTokens = 8;

thread_local bool on_calibration_thread = false;

struct Server {
    llama_context* context = nullptr;
    llama_model* model = nullptr;
    llama_context_params parameters = {};
};

struct Calibration {
    CalibrationRequest request;
    const HeartbeatPage* page = nullptr;
    std::atomic<bool> arranged{false};  // until the route is chosen
    std::atomic<bool> stop{false};
    std::atomic<int> decoding{0};
    std::atomic<Clock::rep> last_decode{0};

    std::mutex computing;  // held while the calibration computes; guards the server's context
    Server server;

    // Belong to the thread.
    std::optional<RouteMeter> meter;
    std::vector<llama_token> tokens;
    uint32_t depth = 0;
    Clock::duration spent{0};
};

// Never destroyed: the thread may outlive main.
Calibration& calibration() {
    static auto* const one = new Calibration;
    return *one;
}

struct FreeContext {
    void operator()(llama_context* context) const { llama_free(context); }
};

bool idle() {
    const Calibration& own = calibration();
    const Clock::time_point last{Clock::duration(own.last_decode.load())};
    return own.page->ready.load(std::memory_order_relaxed) != 0 &&
           own.page->requests.load(std::memory_order_relaxed) == 0 && own.decoding.load() == 0 &&
           Clock::now() - last >= kQuiet;
}

void end(const std::string& text) {
    calibration().arranged = false;
    log_info("engine", "auto: " + text);
}

std::string one_member() { return "; " + calibration().request.decode + " for everything"; }

void choose(RouteTable table) {
    const CalibrationRequest& request = calibration().request;
    table.source = "calibration";
    const auto choice = choose_route(table, {request.decode, request.prefill});
    if (!choice) return end(choice.error().message() + one_member());
    if (choice->split()) {
        const auto set = tandem::set_tandem_route(request.device, choice->prefill, choice->decode, choice->min_tokens);
        if (!set) return end(set.error().message() + one_member());
    }
    std::string kept;
    if (!request.key.empty()) {
        auto tables = open_route_tables();
        const auto stored = tables ? store_route_table(*tables, request.key, table) : tables.error();
        if (!stored) kept = "; not stored: " + stored.error().message();
    }
    end(choice->reason + kept);
}

// Empty, or why this model is not measured. The caller holds the mutex.
std::string make_meter() {
    Calibration& own = calibration();
    const Server& server = own.server;
    if (llama_model_has_encoder(server.model) || server.parameters.embeddings) return "the model makes no tokens";
    auto text = text_tokens(llama_model_get_vocab(server.model), "");
    if (!text) return text.error().message();
    own.tokens = std::move(text->tokens);
    const uint32_t context = llama_n_ctx_seq(server.context), ubatch = llama_n_ubatch(server.context);
    if (ubatch < 2 || context < ubatch) return "the context is shorter than a ubatch";
    MeterPlan plan;
    const CalibrationRequest& request = own.request;
    plan.members = {request.owner, request.owner == request.decode ? request.prefill : request.decode};
    plan.ubatch = ubatch;
    plan.sizes = route_sizes(ubatch);
    plan.ubatches_at_once = std::clamp(context / ubatch, 1u, ubatches_at_once(plan.members, kUbatchesAtOnce));
    const uint32_t batch = plan.ubatches_at_once * ubatch;
    plan.depths = route_depths(std::min(context, kDeepest + batch), batch);
    plan.rounds = kRounds;
    const bool room = context >= ubatch + kTrialTokens;
    plan.trial_tokens = room ? kTrialTokens : 0;
    plan.trial_ubatches = std::clamp((context - plan.trial_tokens) / ubatch, 1u, kTrialUbatches);
    plan.trials = {{request.prefill == plan.members[0] ? 0 : 1, request.decode == plan.members[0] ? 0 : 1}};
    own.depth = std::max(plan.depths.back() + batch, plan.trial_ubatches * ubatch + plan.trial_tokens);
    own.meter.emplace(std::move(plan));
    return "";
}

// The server's settings, for one sequence that is just long enough.
std::unique_ptr<llama_context, FreeContext> open_context() {
    Calibration& own = calibration();
    llama_context_params parameters = own.server.parameters;
    parameters.n_ctx = (own.depth + 255) / 256 * 256;
    parameters.n_ubatch = llama_n_ubatch(own.server.context);
    parameters.n_batch = parameters.n_ubatch * kUbatchesAtOnce;
    parameters.n_seq_max = 1;
    parameters.n_rs_seq = 0;
    parameters.n_outputs_max = parameters.n_outputs_max_per_seq = 1;
    parameters.cb_eval = nullptr;
    parameters.abort_callback = nullptr;
    parameters.samplers = nullptr;
    parameters.n_samplers = 0;
    parameters.ctx_other = nullptr;
    return std::unique_ptr<llama_context, FreeContext>(llama_init_from_model(own.server.model, parameters));
}

// Empty, or why there is no room for a second context. What one needs is known from the server's.
std::string check_memory() {
    Calibration& own = calibration();
    constexpr double kReserve = 1.25;
    double needed = 64 << 20;
    for (const DeviceMemory& row : memory_of(own.server.context, own.server.model, false)) {
        const double share = std::min(1.0, double(own.depth) / std::max(llama_n_ctx(own.server.context), 1u));
        needed += kReserve * (static_cast<double>(row.kv_cache) * share + static_cast<double>(row.compute));
    }
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(ggml_backend_dev_by_name(own.request.device.c_str()), &free, &total);
    if (total == 0 || static_cast<double>(free) >= needed) return "";
    return "not measured, which takes " + bytes_text(static_cast<uint64_t>(needed)) + " of " + bytes_text(free) +
           " that are free";
}

// One go in a time without work. True when the route is settled.
bool measure() {
    Calibration& own = calibration();
    const std::lock_guard lock(own.computing);
    // a llama_decode that begins now waits for the mutex
    if (own.server.context == nullptr || !idle()) return false;
    own.stop = false;
    const auto start = Clock::now();
    if (!own.meter) {
        const std::string why = make_meter();
        if (!why.empty()) return end(why + one_member()), true;
    }
    if (const std::string why = check_memory(); !why.empty()) return end(why + one_member()), true;
    const auto context = open_context();
    if (!context) return end("no memory for a second context to measure with" + one_member()), true;
    const auto stop = [&] { return own.stop.load() || own.page->requests.load(std::memory_order_relaxed) > 0; };
    const auto measured = own.meter->run(context.get(), own.tokens, stop, start + (kBudget - own.spent));
    own.spent += Clock::now() - start;
    if (!measured) return end(measured.error().message() + one_member()), true;
    if (*measured == RouteMeter::End::stopped && own.spent < kBudget) return false;
    choose(own.meter->table());
    return true;
}

void run() {
    on_calibration_thread = true;
    try {
        do std::this_thread::sleep_for(kLook);
        while (!idle() || !measure());
    } catch (const std::exception& error) {
        end(error.what() + one_member());
    }
}

}  // namespace

void arrange_calibration(CalibrationRequest request) {
    calibration().request = std::move(request);
    calibration().arranged = true;
}

void start_calibration(const HeartbeatPage& page) {
    Calibration& own = calibration();
    if (!own.arranged) return;
    own.page = &page;
    try {
        std::thread(run).detach();
    } catch (const std::system_error& error) {
        end(error.what() + one_member());
    }
}

void calibration_context_made(llama_context* context, llama_model* model, const llama_context_params& parameters) {
    Calibration& own = calibration();
    if (!own.arranged || context == nullptr) return;
    const std::lock_guard lock(own.computing);
    if (own.server.context == nullptr) own.server = {context, model, parameters};
}

void calibration_context_gone(const llama_context* context) {
    Calibration& own = calibration();
    if (context == nullptr) return;
    own.stop = true;
    const std::lock_guard lock(own.computing);
    if (own.server.context == context) own.server = {};
}

void calibration_decode_begins() {
    Calibration& own = calibration();
    own.decoding++;
    if (!own.arranged) return;
    own.stop = true;
    const std::lock_guard lock(own.computing);
}

void calibration_decode_ended() {
    Calibration& own = calibration();
    own.last_decode = Clock::now().time_since_epoch().count();
    own.decoding--;
}

bool is_calibration_thread() { return on_calibration_thread; }

}  // namespace onebit
