#include "engine/placement_hooks.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/calibration.h"
#include "engine/next_function.h"
#include "engine/tandem_account.h"
#include "ggml-backend.h"
#include "llama-ext.h"
#include "llama.h"
#include "tandem/counters.h"
#include "tandem/forced_member.h"

// llama.cpp, src/llama-model.h, which needs all of its internal headers
const std::vector<std::pair<std::string, ggml_tensor*>>& llama_internal_get_tensor_map(const llama_model* model);

namespace onebit {
namespace {

constexpr int kMeasuredDecodes = 3;  // buffers are made anew in the first ones, when the server has set what it wants

struct KnownContext {
    const llama_model* model = nullptr;
    std::vector<DeviceMemory> own, with_weights;
    int decodes_left = kMeasuredDecodes;
};

std::mutex mutex;
PlacementTable* table_in_use = nullptr;
std::set<const llama_model*> models;
std::map<const llama_context*, KnownContext> contexts;
std::atomic<int> unsettled{0};  // contexts with decodes left

bool has_guest() {
    const auto tandems = tandem::tandem_counts();
    return std::any_of(tandems.begin(), tandems.end(), [](const auto& one) { return one.members.size() > 1; });
}

std::string device_of(ggml_backend_buffer_type_t type) {
    ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    return device == nullptr || ggml_backend_buft_is_host(type) ? "CPU" : ggml_backend_dev_name(device);
}

DeviceMemory& row_of(std::vector<DeviceMemory>& rows, const std::string& device) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const DeviceMemory& one) { return one.device == device; });
    if (row != rows.end()) return *row;
    rows.push_back({device});
    return rows.back();
}

void count_layers(const llama_model* model, std::vector<DeviceMemory>& rows) {
    std::map<int, std::map<std::string, uint64_t>> bytes;
    for (const auto& [name, tensor] : llama_internal_get_tensor_map(model)) {
        int layer = -1;
        if (!name.starts_with("blk.") || tensor->buffer == nullptr) continue;
        std::from_chars(name.data() + 4, name.data() + name.size(), layer);
        if (layer >= 0) bytes[layer][device_of(ggml_backend_buffer_get_type(tensor->buffer))] += ggml_nbytes(tensor);
    }
    for (const auto& [layer, devices] : bytes) {
        const auto most = std::max_element(devices.begin(), devices.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        row_of(rows, most->first).layers++;
    }
}

// Caller holds the mutex.
void publish() {
    if (table_in_use == nullptr) return;
    std::vector<DeviceMemory> sum;
    std::set<const llama_model*> counted;
    for (const auto& [context, known] : contexts) {
        // contexts that share a model have its weights once
        const auto& rows = counted.insert(known.model).second ? known.with_weights : known.own;
        for (const DeviceMemory& row : rows) {
            DeviceMemory& to = row_of(sum, row.device);
            to.weights += row.weights;
            to.kv_cache += row.kv_cache;
            to.compute += row.compute;
            to.layers += row.layers;
        }
    }
    std::erase_if(sum, [](const DeviceMemory& row) { return row.weights + row.kv_cache + row.compute == 0; });
    std::sort(sum.begin(), sum.end(), [](const DeviceMemory& a, const DeviceMemory& b) { return a.device < b.device; });
    write_placement(*table_in_use, sum);
}

// Caller holds the mutex.
void measure(const llama_context* context, KnownContext& known) {
    known.own = memory_of(context, known.model, false);
    known.with_weights = memory_of(context, known.model, true);
}

bool has_memory(const llama_model* model) {
    const std::lock_guard lock(mutex);
    return table_in_use != nullptr && models.count(model) > 0;
}

void context_made(const llama_context* context, const llama_model* model) {
    const std::lock_guard lock(mutex);
    KnownContext& known = contexts[context];
    known.model = model;
    measure(context, known);
    unsettled++;
    publish();
}

void context_gone(const llama_context* context) {
    const std::lock_guard lock(mutex);
    const auto known = contexts.find(context);
    if (known == contexts.end()) return;
    if (known->second.decodes_left > 0) unsettled--;
    contexts.erase(known);
    publish();
}

void decoded(const llama_context* context) {
    const std::lock_guard lock(mutex);
    const auto known = contexts.find(context);
    if (known == contexts.end() || known->second.decodes_left == 0) return;
    if (--known->second.decodes_left == 0) unsettled--;
    measure(context, known->second);
    publish();
}

}  // namespace

void install_placement(PlacementTable& table) {
    const std::lock_guard lock(mutex);
    table_in_use = &table;
    publish();
}

void note_model(const llama_model* model, bool has_memory) {
    const std::lock_guard lock(mutex);
    if (model == nullptr) return;
    // an address may come again with another model
    if (has_memory)
        models.insert(model);
    else
        models.erase(model);
}

std::vector<DeviceMemory> memory_of(const llama_context* context, const llama_model* model, bool with_weights) {
    std::vector<DeviceMemory> rows;
    for (const auto& [type, sizes] : llama_get_memory_breakdown(context)) {
        DeviceMemory& row = row_of(rows, device_of(type));
        if (with_weights) row.weights += sizes.model;
        row.kv_cache += sizes.context;
        row.compute += sizes.compute;
    }
    if (with_weights) count_layers(model, rows);
    return rows;
}

}  // namespace onebit

extern "C" llama_context* llama_init_from_model(llama_model* model, llama_context_params params) {
    static const auto next = onebit::next_function<decltype(&llama_init_from_model)>("llama_init_from_model");
    llama_context* context = nullptr;
    {
        // laid out for a guest, whose graphs need the most memory: no buffer is replaced when the route changes
        std::optional<onebit::tandem::ForcedMember> guest;
        if (onebit::has_guest()) guest.emplace(1);
        context = next(model, params);
    }
    if (onebit::is_calibration_thread()) return context;
    if (context == nullptr || !onebit::has_memory(model)) return context;
    onebit::context_made(context, model);
    onebit::calibration_context_made(context, model, params);
    return context;
}

extern "C" void llama_free(llama_context* context) {
    static const auto next = onebit::next_function<decltype(&llama_free)>("llama_free");
    if (!onebit::is_calibration_thread()) {
        onebit::calibration_context_gone(context);
        onebit::context_gone(context);
    }
    next(context);
}

extern "C" int32_t llama_decode(llama_context* context, llama_batch batch) {
    static const auto next = onebit::next_function<decltype(&llama_decode)>("llama_decode");
    if (onebit::is_calibration_thread()) {
        const int32_t done = next(context, batch);
        onebit::account_batch({}, false);  // its tokens are no request's
        return done;
    }
    onebit::calibration_decode_begins();
    const int32_t result = next(context, batch);
    onebit::calibration_decode_ended();
    if (onebit::unsettled.load(std::memory_order_relaxed) > 0) onebit::decoded(context);
    onebit::account_batch(batch, result != 0);
    return result;
}
