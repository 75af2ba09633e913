#include "engine/heartbeat_hooks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>

#include "engine/next_function.h"
#include "engine/placement_hooks.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "llama.h"
#ifdef ONEBIT_HAVE_VULKAN
#include "vkshare/pipeline_counter.h"
#endif

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic<HeartbeatPage*> page_in_use{nullptr};

// One device and the functions of its backends that ours replace. ggml's devices live as long as the process, and all
// backends of one device share their functions.
struct Hooks {
    std::atomic<ggml_backend_dev_t> device{nullptr};
    decltype(ggml_backend_device_i::init_backend) init_backend = nullptr;
    std::atomic<decltype(ggml_backend_i::graph_compute)> graph_compute{nullptr};
    std::atomic<decltype(ggml_backend_i::synchronize)> synchronize{nullptr};
    ggml_backend_set_abort_callback_t set_abort_callback = nullptr;
    // graphs handed over and not waited for, the time spent in handing over, and their work
    std::atomic<uint64_t> open_graphs{0}, open_us{0}, open_work{0};
    std::atomic<bool> measured_one{false};
};

// Entries are only ever added, so that a look-up needs no lock.
std::array<Hooks, 64> all_hooks;

Hooks* hooks_of(ggml_backend_dev_t device) {
    for (auto& hooks : all_hooks) {
        const auto present = hooks.device.load(std::memory_order_acquire);
        if (present == device) return &hooks;
        if (present == nullptr) break;
    }
    return nullptr;
}

uint64_t microseconds_since(Clock::time_point start) {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// A node of a graph is done; never asks for the graph's end.
bool on_node(void* data) {
    static_cast<HeartbeatPage*>(data)->graph_steps.fetch_add(1, kRelaxed);
    return false;
}

void graphs_done(Hooks& hooks, HeartbeatPage& page, uint64_t graphs, uint64_t work, uint64_t us) {
    const uint64_t pipelines = page.pipelines.load(kRelaxed);
    const bool compiled = page.pipelines_at_done.exchange(pipelines, kRelaxed) != pipelines;
    // drivers compile in the first graph of a device even where they do not tell
    const bool first = hooks.synchronize.load(kRelaxed) != nullptr && !hooks.measured_one.exchange(true, kRelaxed);
    if (!compiled && !first && us > page.longest_graph_us.load(kRelaxed)) {
        page.longest_graph_us.store(us, kRelaxed);
        page.longest_graph_work.store(work, kRelaxed);
    }
    page.last_graph_us.store(us, kRelaxed);
    page.open_work.fetch_sub(work, kRelaxed);
    page.graphs_done.fetch_add(graphs, std::memory_order_release);
}

ggml_status counted_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) {
    Hooks& hooks = *hooks_of(backend->device);
    HeartbeatPage& page = *page_in_use.load(kRelaxed);
    const uint64_t work = graph_work(graph);
    page.open_work.fetch_add(work, kRelaxed);
    page.graphs_begun.fetch_add(1, kRelaxed);
    // set anew each time: llama.cpp clears it when it makes a context
    if (hooks.set_abort_callback != nullptr) hooks.set_abort_callback(backend, on_node, &page);
    const auto start = Clock::now();
    const ggml_status status = hooks.graph_compute.load(kRelaxed)(backend, graph);
    const uint64_t us = microseconds_since(start);
    if (hooks.synchronize.load(kRelaxed) == nullptr) {
        graphs_done(hooks, page, 1, work, us);
    } else {
        // only handed over: a GPU that hangs does so in synchronize
        hooks.open_us.fetch_add(us, kRelaxed);
        hooks.open_work.fetch_add(work, kRelaxed);
        hooks.open_graphs.fetch_add(1, kRelaxed);
    }
    return status;
}

void counted_synchronize(ggml_backend_t backend) {
    Hooks& hooks = *hooks_of(backend->device);
    // taken before the wait: what another thread hands over meanwhile is not waited for
    const uint64_t graphs = hooks.open_graphs.exchange(0, kRelaxed);
    const uint64_t work = hooks.open_work.exchange(0, kRelaxed);
    const uint64_t begun_us = hooks.open_us.exchange(0, kRelaxed);
    const auto start = Clock::now();
    hooks.synchronize.load(kRelaxed)(backend);
    if (graphs > 0) graphs_done(hooks, *page_in_use.load(kRelaxed), graphs, work, begun_us + microseconds_since(start));
}

ggml_backend_t counted_init_backend(ggml_backend_dev_t device, const char* params) {
    Hooks& hooks = *hooks_of(device);
    ggml_backend_t backend = hooks.init_backend(device, params);
    if (backend == nullptr || backend->device != device || backend->iface.graph_compute == counted_graph_compute)
        return backend;
    hooks.graph_compute.store(backend->iface.graph_compute, kRelaxed);
    hooks.synchronize.store(backend->iface.synchronize, kRelaxed);
    backend->iface.graph_compute = counted_graph_compute;
    if (backend->iface.synchronize != nullptr) backend->iface.synchronize = counted_synchronize;
    return backend;
}

// Devices that are new since the last call, such as those of --rpc, get their hooks.
void hook_devices() {
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (hooks_of(device) != nullptr) continue;
        for (auto& hooks : all_hooks) {
            if (hooks.device.load(kRelaxed) != nullptr) continue;
            hooks.init_backend = device->iface.init_backend;
            hooks.set_abort_callback =
                reinterpret_cast<ggml_backend_set_abort_callback_t>(ggml_backend_reg_get_proc_address(
                    ggml_backend_dev_backend_reg(device), "ggml_backend_set_abort_callback"));
            hooks.device.store(device, std::memory_order_release);
            device->iface.init_backend = counted_init_backend;
            break;
        }
    }
}

struct LoadProgress {
    HeartbeatPage& page;
    llama_progress_callback next;
    void* next_data;
};

bool on_load_progress(float progress, void* data) {
    const auto& load = *static_cast<LoadProgress*>(data);
    load.page.load_steps.fetch_add(1, kRelaxed);
    const auto permille = static_cast<uint64_t>(progress < 0 ? 0 : progress > 1 ? 1000 : progress * 1000);
    // a second model, such as a draft model, does not take back what was shown
    if (permille > load.page.load_permille.load(kRelaxed)) load.page.load_permille.store(permille, kRelaxed);
    return load.next == nullptr || load.next(progress, load.next_data);
}

uint64_t node_work(const ggml_tensor* node) {
    const auto elements = static_cast<uint64_t>(ggml_nelements(node));
    switch (node->op) {
        case GGML_OP_NONE:
        case GGML_OP_RESHAPE:
        case GGML_OP_VIEW:
        case GGML_OP_PERMUTE:
        case GGML_OP_TRANSPOSE:
            return 0;
        case GGML_OP_MUL_MAT:
        case GGML_OP_MUL_MAT_ID:
            return elements * static_cast<uint64_t>(node->src[0]->ne[0]);
        case GGML_OP_FLASH_ATTN_EXT:
            return 2 * elements * static_cast<uint64_t>(node->src[1]->ne[1]);
        default:
            return elements;
    }
}

}  // namespace

uint64_t graph_work(const ggml_cgraph* graph) {
    // Looking at each of a thousand nodes costs 20 us of cache misses, for every token. The same few of them, in an
    // order without the rhythm of the layers, tell a prompt from a token as well.
    constexpr uint64_t kLooks = 64, kStep = 0x9E3779B1;
    const auto nodes = static_cast<uint64_t>(std::max(graph->n_nodes, 0));
    uint64_t work = 0;
    if (nodes <= kLooks) {
        for (uint64_t i = 0; i < nodes; ++i) work += node_work(graph->nodes[i]);
        return work;
    }
    for (uint64_t i = 0; i < kLooks; ++i) work += node_work(graph->nodes[i * kStep % nodes]);
    return work * nodes / kLooks;
}

void install_heartbeat(HeartbeatPage& page) {
    page_in_use.store(&page);
    install_placement(page.placement);
    hook_devices();
#ifdef ONEBIT_HAVE_VULKAN
    count_vulkan_pipelines(&page.pipelines);
#endif
}

}  // namespace onebit

// Stands before llama.cpp's own in the search for this name: the program comes before its shared libraries. Does what
// that one does and shows its progress.
extern "C" llama_model* llama_model_load_from_file(const char* path, llama_model_params params) {
    using Load = llama_model* (*)(const char*, llama_model_params);
    static const auto next = onebit::next_function<Load>("llama_model_load_from_file");
    onebit::HeartbeatPage* page = onebit::page_in_use.load();
    if (page == nullptr) return next(path, params);
    onebit::hook_devices();
    if (params.no_alloc || params.vocab_only) {
        llama_model* without_memory = next(path, params);
        onebit::note_model(without_memory, false);
        return without_memory;
    }
    onebit::LoadProgress progress{*page, params.progress_callback, params.progress_callback_user_data};
    params.progress_callback = onebit::on_load_progress;
    params.progress_callback_user_data = &progress;
    llama_model* model = next(path, params);
    onebit::note_model(model, true);
    return model;
}
