// Recorded programs as AQL packets, and the HSA queue that runs them.
//
// Packets are made once. Their kernarg segments, which are the argument blocks themselves, lie in a slot of memory that
// both sides see; a submission copies the packets into the ring with the slot's address and rings the doorbell. Patched
// arguments go into a slot that no running submission reads, so that nothing waits for the device as a rule. Between
// dispatches there is no host: a barrier is the barrier bit and the fences of the next packet.
// Packet formats and fences: HSA Platform System Architecture 1.2, chapter 2.9.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "hrx/runtime/drivers/amdgpu/amdgpu_device.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

constexpr uint32_t wanted_queue_packets = 16384;
constexpr size_t most_slots = 4;
constexpr size_t most_dependencies = 5;  // of one barrier packet

constexpr uint16_t packet_header(hsa_packet_type_t type, bool barrier, hsa_fence_scope_t acquire,
                                 hsa_fence_scope_t release) {
    return static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE | (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                                 acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                 release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

// One copy of the program's arguments.
struct Slot {
    std::unique_ptr<PoolMemory> memory;
    size_t stale_begin = 0, stale_end = 0;
    std::shared_ptr<Completion> user;  // the last submission that reads it
};

struct RecordedPacket {
    hsa_kernel_dispatch_packet_t packet{};
    uint32_t argument_offset = 0;
};

class AmdgpuRecording final : public Recording {
public:
    AmdgpuRecording(Pool pool, hsa_agent_t agent, size_t argument_bytes)
        : pool_(pool), agent_(agent), argument_bytes_(argument_bytes) {}

    std::vector<RecordedPacket> packets;

    // A slot that holds the arguments and that the submission may use.
    Result<Slot*> prepare(const Arguments& arguments);

private:
    Result<Slot*> choose();

    const Pool pool_;
    const hsa_agent_t agent_;
    const size_t argument_bytes_;
    std::vector<Slot> slots_;
    size_t current_ = 0;
};

Result<Slot*> AmdgpuRecording::choose() {
    const size_t count = slots_.size();
    for (size_t i = 0; i < count; ++i) {
        const size_t at = (current_ + i) % count;
        Slot& slot = slots_[at];
        if (slot.user != nullptr) {
            const auto finished = slot.user->wait(0);
            if (!finished.ok()) return finished.error();
            if (!*finished) continue;
            slot.user.reset();
        }
        current_ = at;
        return &slot;
    }
    if (count < most_slots) {
        const hsa_agent_t access[] = {agent_, cpu_agents().front()};
        auto memory = PoolMemory::allocate(pool_, argument_bytes_, access);
        if (!memory.ok()) return std::move(memory).error();
        slots_.push_back({std::move(*memory), 0, argument_bytes_, nullptr});
        current_ = count;
        return &slots_.back();
    }
    // in use for longest: the one after the current
    current_ = (current_ + 1) % count;
    Slot& oldest = slots_[current_];
    for (;;) {
        const auto finished = oldest.user->wait(UINT64_MAX);
        if (!finished.ok()) return finished.error();
        if (*finished) break;
    }
    oldest.user.reset();
    return &oldest;
}

Result<Slot*> AmdgpuRecording::prepare(const Arguments& arguments) {
    if (arguments.begin < arguments.end) {
        for (Slot& slot : slots_) {
            const bool fresh = slot.stale_begin == slot.stale_end;
            slot.stale_begin = fresh ? arguments.begin : std::min(slot.stale_begin, arguments.begin);
            slot.stale_end = fresh ? arguments.end : std::max(slot.stale_end, arguments.end);
        }
    }
    // what a running submission reads is right for this one as well
    if (!slots_.empty() && slots_[current_].stale_begin == slots_[current_].stale_end) return &slots_[current_];
    const auto chosen = choose();
    if (!chosen.ok()) return chosen.error();
    Slot& slot = **chosen;
    std::memcpy(static_cast<std::byte*>(slot.memory->pointer) + slot.stale_begin,
                arguments.bytes.data() + slot.stale_begin, slot.stale_end - slot.stale_begin);
    slot.stale_begin = slot.stale_end = 0;
    return &slot;
}

class AmdgpuChannel final : public Channel {
public:
    AmdgpuChannel(std::shared_ptr<SignalPool> signals, std::shared_ptr<QueueState> state, hsa_queue_t* queue)
        : signals_(std::move(signals)), state_(std::move(state)), queue_(queue) {}
    ~AmdgpuChannel() override { api().hsa_queue_destroy(queue_); }

    Result<std::shared_ptr<Completion>> submit(Recording* recording, const Arguments& arguments,
                                               std::span<const std::shared_ptr<Completion>> waits) override;

private:
    // A submission's packets go in one after another; begin reserves their places.
    void begin(size_t packets);
    Result<void> put(const void* packet);
    void ring();

    const std::shared_ptr<SignalPool> signals_;
    const std::shared_ptr<QueueState> state_;
    hsa_queue_t* const queue_;
    uint64_t next_ = 0, rung_ = 0;  // packet indices
};

void AmdgpuChannel::begin(size_t packets) { next_ = rung_ = api().hsa_queue_add_write_index_relaxed(queue_, packets); }

Result<void> AmdgpuChannel::put(const void* packet) {
    while (next_ - api().hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) {
        ring();
        if (const auto failure = state_->failure()) return *failure;
        std::this_thread::yield();
    }
    auto* place = static_cast<std::byte*>(queue_->base_address) + (next_ & (queue_->size - 1)) * 64;
    std::memcpy(place + 4, static_cast<const std::byte*>(packet) + 4, 60);
    uint32_t head = 0;
    std::memcpy(&head, packet, sizeof head);
    // the header makes the packet valid: last, and after all else is seen
    std::atomic_ref(*reinterpret_cast<uint32_t*>(place)).store(head, std::memory_order_release);
    next_++;
    return {};
}

void AmdgpuChannel::ring() {
    if (next_ == rung_) return;
    api().hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(next_ - 1));
    rung_ = next_;
}

Result<std::shared_ptr<Completion>> AmdgpuChannel::submit(Recording* recording, const Arguments& arguments,
                                                          std::span<const std::shared_ptr<Completion>> waits) {
    if (const auto failure = state_->failure()) return *failure;
    auto* program = static_cast<AmdgpuRecording*>(recording);
    Slot* slot = nullptr;
    if (program != nullptr && !arguments.bytes.empty()) {
        const auto prepared = program->prepare(arguments);
        if (!prepared.ok()) return prepared.error();
        slot = *prepared;
    }
    const auto signal = signals_->take();
    if (!signal.ok()) return signal.error();
    auto completion = std::make_shared<SignalCompletion>(
        signals_, state_, *signal, std::vector<std::shared_ptr<Completion>>(waits.begin(), waits.end()));
    if (slot != nullptr) slot->user = completion;

    const size_t dispatches = program == nullptr ? 0 : program->packets.size();
    const size_t wait_packets = (waits.size() + most_dependencies - 1) / most_dependencies;
    begin(wait_packets + dispatches + 1);
    for (size_t first = 0; first < waits.size(); first += most_dependencies) {
        hsa_barrier_and_packet_t packet{};
        packet.header = packet_header(HSA_PACKET_TYPE_BARRIER_AND, true, HSA_FENCE_SCOPE_NONE, HSA_FENCE_SCOPE_NONE);
        for (size_t i = first; i < std::min(first + most_dependencies, waits.size()); ++i) {
            packet.dep_signal[i - first] = static_cast<const SignalCompletion&>(*waits[i]).signal();
        }
        ONEBIT_RETURN_IF_ERROR(put(&packet));
    }
    for (size_t i = 0; i < dispatches; ++i) {
        hsa_kernel_dispatch_packet_t packet = program->packets[i].packet;
        if (slot != nullptr) {
            packet.kernarg_address =
                static_cast<std::byte*>(slot->memory->pointer) + program->packets[i].argument_offset;
        }
        ONEBIT_RETURN_IF_ERROR(put(&packet));
    }
    hsa_barrier_and_packet_t last{};
    last.header = packet_header(HSA_PACKET_TYPE_BARRIER_AND, true, HSA_FENCE_SCOPE_NONE, HSA_FENCE_SCOPE_SYSTEM);
    last.completion_signal = *signal;
    ONEBIT_RETURN_IF_ERROR(put(&last));
    ring();
    return std::shared_ptr<Completion>(std::move(completion));
}

void on_queue_error(hsa_status_t status, hsa_queue_t*, void* data) { static_cast<QueueState*>(data)->fail(status); }

}  // namespace

Result<std::unique_ptr<Recording>> AmdgpuDevice::record(std::span<const Launch> launches, size_t argument_bytes) {
    auto recording = std::make_unique<AmdgpuRecording>(argument_pool_, agent_, argument_bytes);
    recording->packets.reserve(launches.size());
    for (const Launch& launch : launches) {
        const bool first = recording->packets.empty();
        RecordedPacket recorded;
        recorded.argument_offset = launch.argument_offset;
        hsa_kernel_dispatch_packet_t& packet = recorded.packet;
        // the first sees what the host wrote, one after a barrier what others of the GPU wrote
        const hsa_fence_scope_t acquire = first                   ? HSA_FENCE_SCOPE_SYSTEM
                                          : launch.barrier_before ? HSA_FENCE_SCOPE_AGENT
                                                                  : HSA_FENCE_SCOPE_NONE;
        packet.header = packet_header(HSA_PACKET_TYPE_KERNEL_DISPATCH, first || launch.barrier_before, acquire,
                                      HSA_FENCE_SCOPE_AGENT);
        packet.setup = 3 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
        packet.workgroup_size_x = static_cast<uint16_t>(launch.threads[0]);
        packet.workgroup_size_y = static_cast<uint16_t>(launch.threads[1]);
        packet.workgroup_size_z = static_cast<uint16_t>(launch.threads[2]);
        packet.grid_size_x = launch.groups[0] * launch.threads[0];
        packet.grid_size_y = launch.groups[1] * launch.threads[1];
        packet.grid_size_z = launch.groups[2] * launch.threads[2];
        packet.private_segment_size = launch.kernel->info.private_bytes;
        packet.group_segment_size = launch.kernel->info.static_lds_bytes + launch.dynamic_lds_bytes;
        packet.kernel_object = launch.kernel->object;
        recording->packets.push_back(recorded);
    }
    return std::unique_ptr<Recording>(std::move(recording));
}

Result<std::unique_ptr<Channel>> AmdgpuDevice::create_channel() {
    uint32_t least = 0, most = 0;
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AGENT_INFO_QUEUE_MIN_SIZE, &least);
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AGENT_INFO_QUEUE_MAX_SIZE, &most);
    const uint32_t size = std::clamp(wanted_queue_packets, std::min(least, most), most);
    auto state = std::make_shared<QueueState>();
    hsa_queue_t* queue = nullptr;
    ONEBIT_HRX_HSA(hsa_queue_create, agent_, size, HSA_QUEUE_TYPE_SINGLE, on_queue_error, state.get(), UINT32_MAX,
                   UINT32_MAX, &queue);
    return std::unique_ptr<Channel>(std::make_unique<AmdgpuChannel>(signals_, std::move(state), queue));
}

}  // namespace onebit::hrx::runtime::amdgpu
