// If this fails, an engine works without its supervisor seeing it: it would be killed as hung, or a hang missed.
#include "engine/heartbeat_hooks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml.h"
#include "llama.h"
#include "models/builtin_model.h"

namespace onebit {
namespace {

// A chain of matrix products on a backend that was made after the hooks.
class Graph {
public:
    Graph(ggml_backend_t backend, int nodes, int64_t size, int64_t columns) {
        context_ = ggml_init({ggml_tensor_overhead() * (static_cast<size_t>(nodes) + 2) +
                                  ggml_graph_overhead_custom(static_cast<size_t>(nodes) + 8, false),
                              nullptr, true});
        ggml_tensor* weights = ggml_new_tensor_2d(context_, GGML_TYPE_F32, size, size);
        ggml_tensor* x = ggml_new_tensor_2d(context_, GGML_TYPE_F32, size, columns);
        for (int i = 0; i < nodes; ++i) x = ggml_mul_mat(context_, weights, x);
        graph_ = ggml_new_graph_custom(context_, static_cast<size_t>(nodes) + 8, false);
        ggml_build_forward_expand(graph_, x);
        buffer_ = ggml_backend_alloc_ctx_tensors(context_, backend);
        ggml_backend_buffer_clear(buffer_, 0);
    }
    ~Graph() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ggml_cgraph* get() const { return graph_; }

private:
    ggml_context* context_;
    ggml_cgraph* graph_;
    ggml_backend_buffer_t buffer_;
};

Heartbeat& heartbeat() {
    static auto* page = new Heartbeat(std::move(Heartbeat::create().value()));
    return *page;
}

ggml_backend_t new_cpu_backend() {
    install_heartbeat(heartbeat().page());
    return ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
}

TEST(GraphWork, CountsMultiplyAdds) {
    ggml_backend_t backend = new_cpu_backend();
    const Graph token(backend, 3, 32, 1), prompt(backend, 3, 32, 512);
    EXPECT_EQ(graph_work(token.get()), 3u * 32 * 32);
    EXPECT_EQ(graph_work(prompt.get()), 512 * graph_work(token.get()));
    // larger graphs are sampled: the ratio must stay
    const Graph long_token(backend, 1000, 32, 1), long_prompt(backend, 1000, 32, 8);
    EXPECT_EQ(graph_work(long_token.get()), 1000u * 32 * 32);
    EXPECT_EQ(graph_work(long_prompt.get()), 8 * graph_work(long_token.get()));
    ggml_backend_free(backend);
}

TEST(HeartbeatHooks, CpuGraphIsBegunDoneMeasuredAndCountedByNode) {
    ggml_backend_t backend = new_cpu_backend();
    auto& page = heartbeat().page();
    const uint64_t begun = page.graphs_begun, done = page.graphs_done, steps = page.graph_steps;
    const Graph graph(backend, 5, 256, 64);
    ASSERT_EQ(ggml_backend_graph_compute(backend, graph.get()), GGML_STATUS_SUCCESS);
    EXPECT_EQ(page.graphs_begun, begun + 1);
    EXPECT_EQ(page.graphs_done, done + 1);
    EXPECT_GE(page.graph_steps, steps + 5);
    EXPECT_EQ(page.open_work, 0u);
    EXPECT_GT(page.longest_graph_us, 0u);
    EXPECT_GT(page.longest_graph_work, 0u);
    ggml_backend_free(backend);
}

TEST(HeartbeatHooks, InstallingTwiceCountsOnce) {
    ggml_backend_t backend = new_cpu_backend();
    install_heartbeat(heartbeat().page());
    auto& page = heartbeat().page();
    const uint64_t begun = page.graphs_begun;
    const Graph graph(backend, 1, 8, 1);
    ggml_backend_graph_compute(backend, graph.get());
    EXPECT_EQ(page.graphs_begun, begun + 1);
    ggml_backend_free(backend);
}

TEST(HeartbeatHooks, LoadProgressIsShownAndTheCallersCallbackStillCalled) {
    install_heartbeat(heartbeat().page());
    auto& page = heartbeat().page();
    page.load_permille = 0;
    const uint64_t steps = page.load_steps;
    llama_backend_init();
    auto file = builtin_model();
    ASSERT_TRUE(file.ok()) << file.error().message();
    llama_model_params params = llama_model_default_params();
    int calls = 0;
    params.progress_callback = [](float, void* data) { return ++*static_cast<int*>(data), true; };
    params.progress_callback_user_data = &calls;
    llama_model* model = llama_model_load_from_file(file->c_str(), params);
    ASSERT_NE(model, nullptr);
    llama_model_free(model);
    EXPECT_EQ(page.load_permille, 1000u);
    EXPECT_GT(page.load_steps, steps + 1);
    EXPECT_EQ(page.load_steps - steps, static_cast<uint64_t>(calls));
}

TEST(HeartbeatHooks, CallersCallbackMayStillAbort) {
    install_heartbeat(heartbeat().page());
    auto file = builtin_model();
    ASSERT_TRUE(file.ok());
    llama_model_params params = llama_model_default_params();
    params.progress_callback = [](float, void*) { return false; };
    EXPECT_EQ(llama_model_load_from_file(file->c_str(), params), nullptr);
}

// A device whose graphs finish in synchronize, as a GPU's do, and not before the test allows it. Last, because
// llama.cpp could not load a model with a device that has so little.
std::atomic<bool> may_finish{false};
ggml_status submit_only(ggml_backend_t, ggml_cgraph*) { return GGML_STATUS_SUCCESS; }
void wait_for_gpu(ggml_backend_t) {
    while (!may_finish) std::this_thread::yield();
}
const char* device_name(ggml_backend_dev_t) { return "Slow0"; }
void backend_free(ggml_backend_t backend) { delete backend; }
ggml_backend_t init_slow(ggml_backend_dev_t device, const char*) {
    auto* backend = new ggml_backend{};
    backend->device = device;
    backend->iface.graph_compute = submit_only;
    backend->iface.synchronize = wait_for_gpu;
    backend->iface.free = backend_free;
    return backend;
}
const char* reg_name(ggml_backend_reg_t) { return "Slow"; }
size_t one_device(ggml_backend_reg_t) { return 1; }
ggml_backend_dev_t slow_device(ggml_backend_reg_t reg, size_t) {
    static ggml_backend_device device = [reg] {
        ggml_backend_device made{};
        made.iface.get_name = device_name;
        made.iface.get_description = device_name;
        made.iface.init_backend = init_slow;
        made.reg = reg;
        return made;
    }();
    return &device;
}

TEST(HeartbeatHooks, AsynchronousGraphStaysOpenUntilSynchronizeReturns) {
    static ggml_backend_reg reg{GGML_BACKEND_API_VERSION, {reg_name, one_device, slow_device, nullptr}, nullptr};
    ggml_backend_register(&reg);
    ggml_backend_t cpu = new_cpu_backend();
    const Graph graph(cpu, 2, 8, 4);
    ggml_backend_t backend = ggml_backend_dev_init(slow_device(&reg, 0), nullptr);
    auto& page = heartbeat().page();
    const uint64_t done = page.graphs_done;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(ggml_backend_graph_compute_async(backend, graph.get()), GGML_STATUS_SUCCESS);
    EXPECT_EQ(page.graphs_begun, page.graphs_done + 3);
    EXPECT_EQ(page.open_work, 3 * graph_work(graph.get()));
    std::thread waiter([&] { ggml_backend_synchronize(backend); });
    EXPECT_EQ(page.graphs_begun, page.graphs_done + 3) << "a GPU stuck in synchronize must look stuck";
    may_finish = true;
    waiter.join();
    EXPECT_EQ(page.graphs_done, done + 3);
    EXPECT_EQ(page.open_work, 0u);
    ggml_backend_free(backend);
    ggml_backend_free(cpu);
}

}  // namespace
}  // namespace onebit
