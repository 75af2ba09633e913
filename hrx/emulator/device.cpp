#include "hrx/emulator/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "hrx/emulator/packet.h"

namespace onebit::emulator {
namespace {

constexpr auto kForever = std::chrono::steady_clock::time_point::max();
constexpr u64 kPacketBytes = 64;

std::atomic<u16>& header_of(u8* packet) { return *reinterpret_cast<std::atomic<u16>*>(packet); }

// Whether a barrier packet's condition holds. A null signal counts as satisfied for AND and is skipped for OR.
bool barrier_open(const hsa_barrier_and_packet_t& packet, bool any) {
    bool all = true;
    bool one = false;
    bool named = false;
    for (hsa_signal_t dependency : packet.dep_signal) {
        Signal* signal = signal_of(dependency);
        if (signal == nullptr) continue;
        named = true;
        const bool done = signal->value.load(std::memory_order_acquire) == 0;
        all = all && done;
        one = one || done;
    }
    return any ? one || !named : all;
}

struct Holder {
    std::mutex mutex;
    std::shared_ptr<Device> device;
    u32 uses = 0;
};
// never destroyed: see Device
Holder& holder() {
    static auto* instance = new Holder;
    return *instance;
}

}  // namespace

Device::Device(Settings settings) : engine_(memory_, settings) {
    processor_ = std::thread([this] { processor_main(); });
    copier_ = std::thread([this] { copy_main(); });
    events_ = std::thread([this] { event_main(); });
}

Device::~Device() {
    stop_.store(true);
    activity().notify();
    for (std::thread* thread : {&processor_, &copier_, &events_}) {
        // the last hsa_shut_down may come from a callback
        if (thread->get_id() == std::this_thread::get_id())
            thread->detach();
        else
            thread->join();
    }
    if (auto* function = at_end_.load()) function();
    unmap_freed();
    for (auto& [base, allocation] : allocations_)
        if (allocation.mapped_bytes != 0) munmap(reinterpret_cast<void*>(base), allocation.mapped_bytes);
    for (auto& queue : queues_) munmap(queue->hsa.base_address, queue->hsa.size * kPacketBytes);
}

Queue* Device::create_queue(u32 size, u32 type, void (*on_error)(hsa_status_t, hsa_queue_t*, void*), void* data) {
    void* ring = mmap(nullptr, u64{size} * kPacketBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED) return nullptr;
    for (u32 k = 0; k < size; ++k) header_of(static_cast<u8*>(ring) + k * kPacketBytes).store(HSA_PACKET_TYPE_INVALID);
    auto queue = std::make_unique<Queue>();
    queue->hsa.type = type;
    queue->hsa.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
    queue->hsa.base_address = ring;
    queue->hsa.size = size;
    queue->hsa.doorbell_signal = handle_of(&queue->doorbell);
    queue->doorbell.kind = -1;
    queue->doorbell.value.store(-1);
    queue->on_error = on_error;
    queue->on_error_data = data;
    memory_.add({reinterpret_cast<u64>(ring), u64{size} * kPacketBytes, false});
    std::lock_guard lock(mutex_);
    queue->hsa.id = next_queue_id_++;
    queues_.push_back(std::move(queue));
    return queues_.back().get();
}

bool Device::destroy_queue(Queue* queue) {
    {
        std::lock_guard lock(mutex_);
        auto found = std::find_if(queues_.begin(), queues_.end(), [&](const auto& q) { return q.get() == queue; });
        if (found == queues_.end() || queue->dead.exchange(true)) return false;
    }
    // from the queue's own error callback: the processor clears it away when the callback has returned
    if (std::this_thread::get_id() == processor_.get_id()) return true;
    for (;;) {
        const u64 seen = activity().count();
        if (!queue->busy.load()) break;
        activity().wait(seen, kForever);
    }
    std::lock_guard lock(mutex_);
    auto found = std::find_if(queues_.begin(), queues_.end(), [&](const auto& q) { return q.get() == queue; });
    if (found == queues_.end()) return true;
    memory_.remove(reinterpret_cast<u64>(queue->hsa.base_address));
    munmap(queue->hsa.base_address, queue->hsa.size * kPacketBytes);
    queues_.erase(found);
    return true;
}

void Device::remember(std::shared_ptr<CodeObject> object) {
    std::lock_guard lock(mutex_);
    code_.push_back(std::move(object));
}

void Device::forget(const CodeObject* object) {
    std::lock_guard running(running_);
    std::lock_guard lock(mutex_);
    std::erase_if(code_, [&](const auto& known) { return known.get() == object; });
}

const Kernel* Device::find_kernel(u64 object) {
    std::lock_guard lock(mutex_);
    for (const auto& code : code_)
        if (const Kernel* kernel = code->kernel(object)) return kernel;
    return nullptr;
}

void Device::complete(const Queue& queue, hsa_signal_t handle, u64 start) {
    Signal* signal = signal_of(handle);
    if (signal == nullptr) return;
    if (queue.profiled.load()) {
        signal->start.store(start);
        signal->end.store(now());
    }
    add_signal(*signal, -1);
}

void Device::unmap_freed() {
    std::vector<Allocation> freed;
    {
        std::lock_guard lock(mutex_);
        freed.swap(to_unmap_);
    }
    for (const Allocation& allocation : freed)
        munmap(reinterpret_cast<void*>(allocation.base), allocation.mapped_bytes);
}

hsa_status_t Device::report(const Trap& trap) {
    const std::string text = trap.message();
    log_error("emulator", text);
    std::vector<std::pair<hsa_amd_system_event_callback_t, void*>> handlers;
    {
        std::lock_guard lock(mutex_);
        last_trap_ = text;
        handlers = event_handlers_;
    }
    if (trap.kind != TrapKind::out_of_bounds) {
        if (trap.kind == TrapKind::unknown_instruction) return HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION;
        return trap.kind == TrapKind::misaligned ? HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION
                                                 : HSA_STATUS_ERROR_EXCEPTION;
    }
    hsa_amd_event_t event{};
    event.event_type = HSA_AMD_GPU_MEMORY_FAULT_EVENT;
    event.memory_fault.agent = {1};
    event.memory_fault.virtual_address = trap.address;
    event.memory_fault.fault_reason_mask = HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT;
    for (const auto& [callback, data] : handlers) callback(&event, data);
    return HSA_STATUS_ERROR_MEMORY_FAULT;
}

hsa_status_t Device::dispatch(Queue& queue, const hsa_kernel_dispatch_packet_t& packet, u64 index) {
    std::optional<Trap> trap;
    std::string problem;
    {
        std::lock_guard running(running_);
        const Kernel* kernel = find_kernel(packet.kernel_object);
        Dispatch dispatch;
        if (kernel == nullptr)
            problem = "kernel_object is " + std::to_string(packet.kernel_object) +
                      ", expected the address of the descriptor of a loaded kernel";
        else
            dispatch = read_dispatch(packet, *kernel, memory_, problem);
        dispatch.packet = reinterpret_cast<u64>(queue.hsa.base_address) + index % queue.hsa.size * kPacketBytes;
        dispatch.queue = reinterpret_cast<u64>(&queue);
        dispatch.id = index;
        if (problem.empty())
            trap = engine_.run(dispatch);
        else
            problem = "dispatch packet of kernel " + (kernel == nullptr ? "?" : kernel->name) + ": " + problem;
    }
    // callbacks may call anything of HSA, so no lock is held here
    if (trap) return report(*trap);
    if (problem.empty()) return HSA_STATUS_SUCCESS;
    onebit::log_error("emulator", problem);
    std::lock_guard lock(mutex_);
    last_trap_ = problem;
    return HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;
}

bool Device::process(Queue& queue) {
    const u64 index = queue.read_index.load(std::memory_order_relaxed);
    if (static_cast<i64>(index) > queue.doorbell.value.load(std::memory_order_acquire)) return false;
    if (index >= queue.write_index.load(std::memory_order_acquire)) return false;
    u8* slot = static_cast<u8*>(queue.hsa.base_address) + index % queue.hsa.size * kPacketBytes;
    const u16 header = header_of(slot).load(std::memory_order_acquire);
    const u32 type = header & 0xff;
    if (type == HSA_PACKET_TYPE_INVALID) return false;

    hsa_kernel_dispatch_packet_t packet;
    hsa_barrier_and_packet_t barrier;
    hsa_amd_barrier_value_packet_t value;
    std::memcpy(&packet, slot, sizeof(packet));
    std::memcpy(&barrier, slot, sizeof(barrier));
    std::memcpy(&value, slot, sizeof(value));
    const u64 start = now();
    hsa_status_t status = HSA_STATUS_SUCCESS;
    if (type == HSA_PACKET_TYPE_KERNEL_DISPATCH) {
        status = dispatch(queue, packet, index);
        unmap_freed();
    } else if (type == HSA_PACKET_TYPE_BARRIER_AND || type == HSA_PACKET_TYPE_BARRIER_OR) {
        if (!barrier_open(barrier, type == HSA_PACKET_TYPE_BARRIER_OR)) return false;
    } else if (type == HSA_PACKET_TYPE_VENDOR_SPECIFIC && value.amd_format == HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
        Signal* signal = signal_of(value.signal);
        if (signal != nullptr && !satisfies(signal->value.load(std::memory_order_acquire) & value.mask,
                                            static_cast<hsa_signal_condition_t>(value.cond), value.value))
            return false;
    } else {
        log_error("emulator", "packet " + std::to_string(index) +
                                  ": expected a kernel dispatch or a barrier, found type " + std::to_string(type));
        status = HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;
    }
    if (status != HSA_STATUS_SUCCESS) {
        queue.stopped.store(true);
        if (queue.on_error != nullptr) queue.on_error(status, &queue.hsa, queue.on_error_data);
        return true;
    }
    header_of(slot).store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
    queue.read_index.store(index + 1, std::memory_order_release);
    // all three kinds have it in the same place
    complete(queue, packet.completion_signal, start);
    return true;
}

void Device::processor_main() {
    for (;;) {
        const u64 seen = activity().count();  // before the flag: who sets it counts afterwards, so no wait misses it
        if (stop_.load()) return;
        bool progress = false;
        std::vector<Queue*> work;
        {
            std::lock_guard lock(mutex_);
            for (auto& queue : queues_) {
                if (queue->dead.load() || queue->stopped.load()) continue;
                queue->busy.store(true);
                work.push_back(queue.get());
            }
        }
        for (Queue* queue : work) {
            while (!stop_.load() && !queue->dead.load() && !queue->stopped.load() && process(*queue)) progress = true;
            bool dead = false;
            {
                // under the lock, since a thread that destroys the queue may take it away as soon as it is not busy
                std::lock_guard lock(mutex_);
                queue->busy.store(false);
                dead = queue->dead.load();
            }
            if (dead) activity().notify();
        }
        if (!progress) activity().wait(seen, kForever);
    }
}

void Device::copy_later(std::function<void()> copy, std::vector<Signal*> after, Signal* completion) {
    {
        std::lock_guard lock(mutex_);
        copies_.push_back({std::move(copy), std::move(after), completion});
    }
    activity().notify();
}

void Device::copy_main() {
    for (;;) {
        const u64 seen = activity().count();
        if (stop_.load()) return;
        std::optional<Copy> ready;
        {
            std::lock_guard lock(mutex_);
            auto open = [](const Copy& copy) {
                return std::all_of(copy.after.begin(), copy.after.end(), [](const Signal* signal) {
                    return signal->value.load(std::memory_order_acquire) == 0;
                });
            };
            auto found = std::find_if(copies_.begin(), copies_.end(), open);
            if (found != copies_.end()) {
                ready = std::move(*found);
                copies_.erase(found);
            }
        }
        if (!ready) {
            activity().wait(seen, kForever);
            continue;
        }
        const u64 start = now();
        ready->work();
        if (ready->completion == nullptr) continue;
        ready->completion->start.store(start);
        ready->completion->end.store(now());
        add_signal(*ready->completion, -1);
    }
}

void Device::watch(Signal* signal, hsa_signal_condition_t condition, i64 value, hsa_amd_signal_handler handler,
                   void* arg) {
    {
        std::lock_guard lock(mutex_);
        watches_.push_back({signal, condition, value, handler, arg});
    }
    activity().notify();
}

void Device::unwatch(Signal* signal) {
    std::lock_guard lock(mutex_);
    std::erase_if(watches_, [&](const Watch& watch) { return watch.signal == signal; });
}

void Device::event_main() {
    for (;;) {
        const u64 seen = activity().count();
        if (stop_.load()) return;
        std::optional<Watch> ready;
        i64 value = 0;
        {
            std::lock_guard lock(mutex_);
            for (std::size_t k = 0; k < watches_.size() && !ready; ++k) {
                value = watches_[k].signal->value.load(std::memory_order_acquire);
                if (!satisfies(value, watches_[k].condition, watches_[k].value)) continue;
                ready = watches_[k];
                watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(k));
            }
        }
        if (!ready) {
            activity().wait(seen, kForever);
        } else if (ready->handler(value, ready->arg)) {
            std::lock_guard lock(mutex_);
            watches_.push_back(*ready);
        }
    }
}

void Device::on_event(hsa_amd_system_event_callback_t callback, void* data) {
    std::lock_guard lock(mutex_);
    event_handlers_.emplace_back(callback, data);
}

std::string Device::last_trap() {
    std::lock_guard lock(mutex_);
    return last_trap_;
}

std::shared_ptr<Device> device() {
    std::lock_guard lock(holder().mutex);
    return holder().device;
}

bool retain_device() {
    std::lock_guard lock(holder().mutex);
    if (holder().uses++ == 0) holder().device = std::make_shared<Device>(settings_from_environment());
    return true;
}

bool release_device() {
    std::shared_ptr<Device> last;
    std::lock_guard lock(holder().mutex);
    if (holder().uses == 0) return false;
    if (--holder().uses == 0) last.swap(holder().device);
    return true;
}

}  // namespace onebit::emulator
