#include "engine/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/log.h"
#include "common.h"
#include "engine/devices.h"
#include "engine/devices_host.h"
#include "engine/devices_text.h"
#include "engine/llama_log.h"
#include "fit.h"

namespace onebit {
namespace {

constexpr uint32_t least_useful_context = 512;
constexpr uint32_t largest_measured = 1u << 20;
constexpr int most_steps = 5;
constexpr uint32_t context_step = 256;  // llama.cpp pads the cache to multiples of this

Result<ggml_type> cache_type(const std::string& name, const char* key) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                 GGML_TYPE_Q4_1, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1}) {
        if (name == ggml_type_name(type)) return type;
    }
    return Error{ErrorCode::usage, key, "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl", "'" + name + "'", ""};
}

struct Measure {
    std::vector<PlanRow> rows;
    uint32_t trained_context = 0;
};

class Planner {
public:
    Planner(const PlanRequest& request, std::vector<PhysicalDevice> devices)
        : request_(request), devices_(std::move(devices)), host_(read_host_memory()) {}

    Result<void> choose() {
        names_ = request_.devices.empty() ? default_devices(devices_) : request_.devices;
        for (const std::string& name : names_) {
            if (ggml_backend_dev_by_name(name.c_str()) == nullptr) {
                auto known = select_devices(name, devices_);
                if (!known.ok()) return std::move(known).error();
                return Error{ErrorCode::not_found, "device '" + name + "'", "a ggml device name", "none such",
                             "see 1bit devices"};
            }
        }
        std::erase(names_, "CPU");
        return {};
    }

    bool uses_gpu() const { return !names_.empty(); }

    // Past a size, from the line through two smaller measures: llama.cpp keeps books of every cell of the cache, which
    // for a mistyped context would fill the memory.
    Result<Measure> measure(uint32_t context, bool cpu_only, ggml_type type_k, ggml_type type_v) const {
        const uint64_t cells = cells_of(context);
        if (cells <= largest_measured) return measure_exactly(static_cast<uint32_t>(cells), cpu_only, type_k, type_v);
        auto half = measure_exactly(largest_measured / 2, cpu_only, type_k, type_v);
        if (!half.ok()) return half;
        auto whole = measure_exactly(largest_measured, cpu_only, type_k, type_v);
        if (!whole.ok()) return whole;
        if (half->rows.size() != whole->rows.size()) {
            return Error{ErrorCode::internal, request_.model_file, "the same devices for each context", "others", ""};
        }
        const double part = (static_cast<double>(cells) - largest_measured) / (largest_measured / 2.0);
        const auto extend = [part](uint64_t small, uint64_t& large) {
            const double growth = large > small ? static_cast<double>(large - small) : 0;
            large += static_cast<uint64_t>(growth * part);
        };
        for (size_t i = 0; i < whole->rows.size(); i++) {
            extend(half->rows[i].kv_cache, whole->rows[i].kv_cache);
            extend(half->rows[i].compute, whole->rows[i].compute);
        }
        return whole;
    }

    // What the model was trained for stands in every measure of it.
    Result<uint32_t> own_context(ggml_type type_k, ggml_type type_v) const {
        auto least = measure_exactly(least_useful_context, false, type_k, type_v);
        if (!least.ok()) return std::move(least).error();
        return least->trained_context;
    }

    // Kept, since the search for what fits comes back to the same ones.
    Result<Measure> measure_exactly(uint32_t context, bool cpu_only, ggml_type type_k, ggml_type type_v) const {
        const auto key = std::tuple(context, cpu_only, type_k, type_v);
        if (const auto known = measured_.find(key); known != measured_.end()) return known->second;
        auto result = measure_by_llama(context, cpu_only, type_k, type_v);
        if (result.ok()) measured_.emplace(key, *result);
        return result;
    }

    // One measure by llama.cpp: the model's metadata is read, nothing is allocated.
    Result<Measure> measure_by_llama(uint32_t context, bool cpu_only, ggml_type type_k, ggml_type type_v) const try {
        common_params params;
        params.model.path = request_.model_file;
        params.n_ctx = static_cast<int32_t>(context);
        params.n_parallel = static_cast<int32_t>(std::max<uint32_t>(request_.parallel, 1));
        params.n_ubatch = static_cast<int32_t>(request_.ubatch);
        params.n_batch = std::max(params.n_batch, params.n_ubatch);
        // as the server sets it: one token of each slot has logits
        params.n_outputs_max = params.n_parallel;
        params.kv_unified = params.n_parallel > 1;
        params.cache_type_k = type_k;
        params.cache_type_v = type_v;
        params.n_gpu_layers = -2;
        if (!cpu_only) {
            for (const std::string& name : names_) params.devices.push_back(ggml_backend_dev_by_name(name.c_str()));
        }
        params.devices.push_back(nullptr);
        llama_model_params model = common_model_params_to_llama(params);
        const llama_context_params ctx = common_context_params_to_llama(params);

        std::vector<ggml_backend_dev_t> used;
        uint32_t layers = 0, experts = 0;
        Measure result;
        const LlamaLog log;
        common_device_memory_data_vec data;
        try {
            data = common_get_device_memory_data(request_.model_file.c_str(), &model, &ctx, used, layers,
                                                 result.trained_context, experts, GGML_LOG_LEVEL_ERROR);
        } catch (const std::exception& error) {
            const std::string reason = log.first_error();
            return Error{ErrorCode::invalid, request_.model_file, "a model that llama.cpp can load",
                         reason.empty() ? error.what() : reason, "1bit models shows what is known of it"};
        }
        for (size_t i = 0; i < data.size(); i++) {
            const bool host = i >= used.size();  // the last entry
            result.rows.push_back(row(host ? "CPU" : ggml_backend_dev_name(used[i]), data[i]));
        }
        return result;
    } catch (const std::exception& error) {
        return Error{ErrorCode::internal, request_.model_file, "a measure of its memory", error.what(), ""};
    }

    Plan plan_of(const Measure& measure, uint32_t context) const {
        Plan plan;
        plan.model = request_.model_file;
        plan.context = context == 0 ? measure.trained_context : context;
        plan.slots = std::max<uint32_t>(request_.parallel, 1);
        plan.shared = request_.shared;
        plan.rows = measure.rows;
        return plan;
    }

    // Bytes left with this context, or nothing when it cannot be measured.
    std::optional<int64_t> slack(uint32_t context, bool cpu_only, ggml_type type_k, ggml_type type_v) const {
        auto measured = measure(context, cpu_only, type_k, type_v);
        if (!measured.ok()) return {};
        return slack_bytes(plan_of(*measured, context));
    }

    bool fits(uint32_t context, bool cpu_only, ggml_type type_k, ggml_type type_v) const {
        const auto left = slack(context, cpu_only, type_k, type_v);
        return left && *left >= 0;
    }

    // A context that fits and is within an eighth of the largest that does, or 0. Memory grows nearly in a line with
    // the context, and each measure reads the model's head again: so by interpolation, in a few steps.
    uint32_t largest_context(uint32_t too_much, int64_t missing, ggml_type type_k, ggml_type type_v) const {
        uint32_t low = least_useful_context, high = too_much;
        if (low >= high) return 0;
        const auto least = slack(low, false, type_k, type_v);
        if (!least || *least < 0) return 0;
        auto low_left = static_cast<double>(*least), high_left = static_cast<double>(missing);
        for (int step = 0; step < most_steps && high - low > std::max(context_step, low / 8); step++) {
            const double part = low_left / std::max(low_left - high_left, 1.0);
            // a little less than on the line, so that rounding does not end on the wrong side
            const auto guess = static_cast<uint32_t>(low + (high - low) * part * 0.99) / context_step * context_step;
            if (guess <= low) break;
            const auto found = slack(guess, false, type_k, type_v);
            if (!found) break;
            (*found >= 0 ? low : high) = guess;
            (*found >= 0 ? low_left : high_left) = static_cast<double>(*found);
        }
        return low;
    }

    void suggest(Plan& plan, ggml_type type_k, ggml_type type_v) const {
        const std::string flag = request_.shared ? "-c " : "--ctx-size ";
        const uint32_t context = largest_context(plan.context, slack_bytes(plan), type_k, type_v);
        if (context != 0) {
            plan.notes.push_back("would fit: " + flag + std::to_string(context));
        }
        if (type_k == GGML_TYPE_F16 && type_v == GGML_TYPE_F16) {
            const auto left = slack(plan.context, false, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0);
            const std::string flags = " --cache-type-k q8_0 --cache-type-v q8_0";
            if (left && *left >= 0) {
                plan.notes.push_back("would fit: this context with" + flags);
            } else if (left) {
                const uint32_t more = largest_context(plan.context, *left, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0);
                if (more > context) plan.notes.push_back("would fit: " + flag + std::to_string(more) + flags);
            }
        }
        if (uses_gpu() && fits(plan.context, true, type_k, type_v)) {
            plan.notes.push_back("would fit: --device none (on the CPU)");
        }
        if (plan.notes.empty() || !plan.notes.back().starts_with("would fit")) {
            plan.notes.push_back("nothing smaller fits either: take a smaller model or a smaller quantisation of it");
        }
    }

private:
    // Tokens of the cache. A slot's share is a multiple of the step.
    uint64_t cells_of(uint32_t context) const {
        const uint64_t slots = std::max<uint32_t>(request_.parallel, 1);
        if (request_.shared || slots == 1) return context;
        return (uint64_t{context} + context_step - 1) / context_step * context_step * slots;
    }

    PlanRow row(const std::string& name, const common_device_memory_data& data) const {
        PlanRow row;
        row.device = name;
        row.pool = name;
        row.weights = data.model;
        row.kv_cache = data.context;
        row.compute = data.compute;
        if (name == "CPU") {
            row.pool = host_pool;
            row.total_bytes = host_.total;
            row.free_bytes = host_.available;
            return row;
        }
        for (const PhysicalDevice& device : devices_) {
            for (const BackendView& view : device.backends) {
                if (view.id.name != name) continue;
                const bool own_memory = device.kind == DeviceKind::discrete_gpu;
                row.pool = !own_memory ? host_pool : view.id.pci ? to_string(*view.id.pci) : device.backends[0].id.name;
                // an amount without how much of it is free says nothing about fitting
                row.total_bytes = device.free_bytes ? device.total_bytes.value_or(0) : 0;
                row.free_bytes = device.free_bytes.value_or(0);
                if (device.kind == DeviceKind::software_gpu) {
                    row.total_bytes = host_.total;
                    row.free_bytes = host_.available;
                }
            }
        }
        return row;
    }

    static constexpr const char* host_pool = "host memory";
    const PlanRequest& request_;
    std::vector<PhysicalDevice> devices_;
    std::vector<std::string> names_;
    HostMemory host_;
    mutable std::map<std::tuple<uint32_t, bool, ggml_type, ggml_type>, Measure> measured_;
};

}  // namespace

Result<Plan> plan_model(const PlanRequest& request) {
    auto type_k = cache_type(request.cache_type_k, "--cache-type-k");
    if (!type_k.ok()) return std::move(type_k).error();
    auto type_v = cache_type(request.cache_type_v, "--cache-type-v");
    if (!type_v.ok()) return std::move(type_v).error();
    auto devices = list_devices();
    if (!devices.ok()) return std::move(devices).error();

    Planner planner(request, std::move(*devices));
    ONEBIT_RETURN_IF_ERROR(planner.choose());
    uint32_t context = request.context;
    if (context == 0 && !request.shared && request.parallel > 1) {
        auto own = planner.own_context(*type_k, *type_v);
        if (!own.ok()) return std::move(own).error();
        context = *own;
    }
    auto measured = planner.measure(context, false, *type_k, *type_v);
    if (!measured.ok()) return std::move(measured).error();
    Plan plan = planner.plan_of(*measured, context);
    judge(plan);
    if (!plan.fits) planner.suggest(plan, *type_k, *type_v);
    const uint32_t trained = measured->trained_context;
    if (!request.shared && trained > 0 && plan.context > trained)
        plan.notes.push_back("the model was trained for " + std::to_string(trained) +
                             " tokens of context: llama.cpp gives a request no more than that");
    return plan;
}

}  // namespace onebit
