// Recorded programs as CUDA graphs, and the stream that replays them.
//
// All launches read their argument block from one table in device memory, so that a graph is never changed: a patch is
// one copy into the table, ordered by the stream. Between two barriers launches are put into a few lanes, since a chain
// of nodes is the cheapest form that a graph has.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hrx/runtime/drivers/cuda/cuda_device.h"

namespace onebit::hrx::runtime::cuda {
namespace {

// Fewer launches than this cost less one by one: a graph launch is about 5 us, a kernel launch 3 to 4 (H200).
constexpr size_t least_graph_launches = 3;
constexpr size_t default_lanes = 4;

// ONEBIT_HRX_CUDA_REPLAY=graph|stream and ONEBIT_HRX_CUDA_LANES=N, to measure one against the other.
bool use_graph(size_t launches) {
    const char* wanted = std::getenv("ONEBIT_HRX_CUDA_REPLAY");
    if (wanted != nullptr && std::strcmp(wanted, "graph") == 0) return launches != 0;
    if (wanted != nullptr && std::strcmp(wanted, "stream") == 0) return false;
    return launches >= least_graph_launches;
}

size_t lane_limit() {
    const char* wanted = std::getenv("ONEBIT_HRX_CUDA_LANES");
    size_t lanes = 0;
    if (wanted != nullptr) std::from_chars(wanted, wanted + std::strlen(wanted), lanes);
    return lanes == 0 ? default_lanes : lanes;
}

CUfunction function_of(const Launch& launch) { return std::bit_cast<CUfunction>(launch.kernel->object); }

struct KernelCall {
    Launch launch;
    CUdeviceptr block = 0;  // the only parameter of each kernel
};

class CudaRecording final : public Recording {
public:
    explicit CudaRecording(CUcontext context) : context_(context) {}
    ~CudaRecording() override {
        const ContextScope scope(context_);
        if (executable != nullptr) api().cuGraphExecDestroy(executable);
        if (graph_ != nullptr) api().cuGraphDestroy(graph_);
        if (table != 0) api().cuMemFree(table);
    }

    Result<void> build_graph();
    Result<void> run(CUstream stream) const;

    CUdeviceptr table = 0;
    std::vector<KernelCall> calls;
    CUgraphExec executable = nullptr;  // nullptr: launches one by one

private:
    Result<CUgraphNode> add(const KernelCall& call, std::span<const CUgraphNode> dependencies);

    const CUcontext context_;
    CUgraph graph_ = nullptr;
};

Result<CUgraphNode> CudaRecording::add(const KernelCall& call, std::span<const CUgraphNode> dependencies) {
    const Launch& launch = call.launch;
    CUdeviceptr block = call.block;
    void* parameters[] = {&block};  // copied by the call
    CUDA_KERNEL_NODE_PARAMS node_parameters{};
    node_parameters.func = function_of(launch);
    node_parameters.gridDimX = launch.groups[0];
    node_parameters.gridDimY = launch.groups[1];
    node_parameters.gridDimZ = launch.groups[2];
    node_parameters.blockDimX = launch.threads[0];
    node_parameters.blockDimY = launch.threads[1];
    node_parameters.blockDimZ = launch.threads[2];
    node_parameters.sharedMemBytes = launch.dynamic_lds_bytes;
    node_parameters.kernelParams = parameters;
    CUgraphNode node = nullptr;
    ONEBIT_HRX_CUDA(cuGraphAddKernelNode, &node, graph_, dependencies.data(), dependencies.size(), &node_parameters);
    return node;
}

Result<void> CudaRecording::build_graph() {
    ONEBIT_HRX_CUDA(cuGraphCreate, &graph_, 0);
    const size_t most = lane_limit();
    std::vector<CUgraphNode> before, lanes;  // last nodes of the lanes before and after the latest barrier
    for (size_t begin = 0; begin < calls.size();) {
        size_t end = begin + 1;
        while (end < calls.size() && !calls[end].launch.barrier_before) end++;
        const size_t width = std::min(most, end - begin);
        if (before.size() > 1 && width > 1) {
            CUgraphNode join = nullptr;
            ONEBIT_HRX_CUDA(cuGraphAddEmptyNode, &join, graph_, before.data(), before.size());
            before.assign(1, join);
        }
        lanes.assign(width, nullptr);
        for (size_t i = begin; i < end; ++i) {
            CUgraphNode& lane = lanes[(i - begin) % width];
            const auto node = add(calls[i], lane == nullptr ? std::span<const CUgraphNode>(before)
                                                            : std::span<const CUgraphNode>(&lane, 1));
            if (!node.ok()) return node.error();
            lane = *node;
        }
        before.swap(lanes);
        begin = end;
    }
    ONEBIT_HRX_CUDA(cuGraphInstantiate, &executable, graph_, 0);
    return {};
}

Result<void> CudaRecording::run(CUstream stream) const {
    if (executable != nullptr) {
        ONEBIT_HRX_CUDA(cuGraphLaunch, executable, stream);
        return {};
    }
    for (const KernelCall& call : calls) {
        const Launch& launch = call.launch;
        CUdeviceptr block = call.block;
        void* parameters[] = {&block};
        ONEBIT_HRX_CUDA(cuLaunchKernel, function_of(launch), launch.groups[0], launch.groups[1], launch.groups[2],
                        launch.threads[0], launch.threads[1], launch.threads[2], launch.dynamic_lds_bytes, stream,
                        parameters, nullptr);
    }
    return {};
}

class CudaChannel final : public Channel {
public:
    CudaChannel(std::shared_ptr<EventPool> events, CUstream stream) : events_(std::move(events)), stream_(stream) {}
    ~CudaChannel() override {
        const ContextScope scope(events_->context());
        api().cuStreamDestroy(stream_);
    }

    Result<std::shared_ptr<Completion>> submit(Recording* recording, const Arguments& arguments,
                                               std::span<const std::shared_ptr<Completion>> waits) override {
        const ContextScope scope(events_->context());
        for (const auto& wait : waits) {
            ONEBIT_HRX_CUDA(cuStreamWaitEvent, stream_, static_cast<const EventCompletion&>(*wait).event(), 0);
        }
        if (recording != nullptr) {
            const auto& program = static_cast<const CudaRecording&>(*recording);
            if (arguments.begin < arguments.end) {
                ONEBIT_HRX_CUDA(cuMemcpyHtoDAsync, program.table + arguments.begin,
                                arguments.bytes.data() + arguments.begin, arguments.end - arguments.begin, stream_);
            }
            ONEBIT_RETURN_IF_ERROR(program.run(stream_));
        }
        const auto event = events_->take();
        if (!event.ok()) return event.error();
        auto completion = std::make_shared<EventCompletion>(events_, *event);
        ONEBIT_HRX_CUDA(cuEventRecord, *event, stream_);
        return std::shared_ptr<Completion>(std::move(completion));
    }

private:
    const std::shared_ptr<EventPool> events_;
    const CUstream stream_;
};

}  // namespace

Result<std::unique_ptr<Recording>> CudaDevice::record(std::span<const Launch> launches, size_t argument_bytes) {
    const ContextScope scope(context_);
    auto recording = std::make_unique<CudaRecording>(context_);
    if (argument_bytes != 0) ONEBIT_HRX_CUDA(cuMemAlloc, &recording->table, argument_bytes);
    for (const Launch& launch : launches) {
        const auto function = function_of(launch);
        if (launch.dynamic_lds_bytes != 0) {
            // the default limit is lower than the device's, and a program must not lower what another has raised
            int granted = 0;
            ONEBIT_HRX_CUDA(cuFuncGetAttribute, &granted, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
            if (static_cast<uint32_t>(granted) < launch.dynamic_lds_bytes) {
                ONEBIT_HRX_CUDA(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(launch.dynamic_lds_bytes));
            }
        }
        recording->calls.push_back({launch, recording->table + launch.argument_offset});
    }
    if (use_graph(launches.size())) {
        ONEBIT_RETURN_IF_ERROR(recording->build_graph());
        // or else the first replay pays for it
        const std::lock_guard lock(copy_mutex_);
        ONEBIT_HRX_CUDA(cuGraphUpload, recording->executable, copy_stream_);
    }
    return std::unique_ptr<Recording>(std::move(recording));
}

Result<std::unique_ptr<Channel>> CudaDevice::create_channel() {
    const ContextScope scope(context_);
    CUstream stream = nullptr;
    ONEBIT_HRX_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return std::unique_ptr<Channel>(std::make_unique<CudaChannel>(events_, stream));
}

}  // namespace onebit::hrx::runtime::cuda
