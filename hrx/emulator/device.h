// The emulated gfx1151: its memory, the code that is loaded, and the packet processor over its queues. One a process,
// made by the first hsa_init and destroyed by the last hsa_shut_down.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "hrx/emulator/engine.h"
#include "hrx/emulator/signal.h"

namespace onebit::emulator {

// A queue of the device; `hsa` comes first, so that the program's hsa_queue_t* is this object. read and write indices
// are those of HSA: packets taken, packets reserved.
struct Queue {
    hsa_queue_t hsa{};
    std::atomic<u64> write_index{0};
    std::atomic<u64> read_index{0};
    Signal doorbell;
    void (*on_error)(hsa_status_t, hsa_queue_t*, void*) = nullptr;
    void* on_error_data = nullptr;
    std::atomic<bool> profiled{false};
    std::atomic<bool> stopped{false};  // by an error
    std::atomic<bool> dead{false};     // being destroyed
    std::atomic<bool> busy{false};     // the processor works on it
};

struct Allocation {
    u64 base = 0;
    u64 bytes = 0;         // as asked for
    u64 mapped_bytes = 0;  // whole pages; 0 for memory that is not ours
    hsa_amd_pointer_type_t type = HSA_EXT_POINTER_TYPE_HSA;
    u64 pool = 0;
    int shared_fd = -1;  // once exported
    u32 locks = 1;       // of hsa_amd_memory_lock
};

class Device {
public:
    explicit Device(Settings settings);
    ~Device();

    MemoryMap& memory() { return memory_; }
    Engine& engine() { return engine_; }

    // Queues and packets. ring bytes = 64 * size.
    Queue* create_queue(u32 size, u32 type, void (*on_error)(hsa_status_t, hsa_queue_t*, void*), void* data);
    bool destroy_queue(Queue* queue);  // waits for a packet in work; false when there is no such queue

    // Memory. Sizes as the caller gave them: an access behind them traps.
    hsa_status_t allocate(u64 bytes, u64 pool, void** out);
    hsa_status_t free(void* pointer);
    hsa_status_t lock(void* pointer, u64 bytes);
    hsa_status_t unlock(void* pointer);
    hsa_status_t map_file(int fd, u64* bytes, void** out);
    hsa_status_t unmap_file(void* pointer);
    // Moves the allocation's pages into a memfd, at the same address, the first time.
    hsa_status_t export_file(const void* pointer, u64 bytes, int* fd, u64* offset);
    std::optional<Allocation> find(const void* pointer);

    // Code. The object stays alive until forgotten.
    void remember(std::shared_ptr<CodeObject> object);
    void forget(const CodeObject* object);
    // Called once by the destructor, while the memory map still lives.
    void at_end(void (*function)()) { at_end_ = function; }

    // Runs on the copy thread once all signals are 0; then `completion` counts down.
    void copy_later(std::function<void()> copy, std::vector<Signal*> after, Signal* completion);
    // Calls the handler on the event thread when the condition holds.
    void watch(Signal* signal, hsa_signal_condition_t condition, i64 value, hsa_amd_signal_handler handler, void* arg);
    void unwatch(Signal* signal);
    void on_event(hsa_amd_system_event_callback_t callback, void* data);
    // The text of the newest trap, empty without one.
    std::string last_trap();

private:
    struct Copy {
        std::function<void()> work;
        std::vector<Signal*> after;
        Signal* completion;
    };
    struct Watch {
        Signal* signal;
        hsa_signal_condition_t condition;
        i64 value;
        hsa_amd_signal_handler handler;
        void* arg;
    };
    void processor_main();
    void copy_main();
    void event_main();
    // True when the queue's next packet was done.
    bool process(Queue& queue);
    hsa_status_t dispatch(Queue& queue, const hsa_kernel_dispatch_packet_t& packet, u64 index);
    const Kernel* find_kernel(u64 object);
    hsa_status_t report(const Trap& trap);
    void complete(const Queue& queue, hsa_signal_t handle, u64 start);
    void unmap_freed();

    MemoryMap memory_;
    Engine engine_;
    std::mutex mutex_;
    std::mutex running_;  // held while packets execute: exports wait for it
    std::map<u64, Allocation> allocations_;
    std::vector<Allocation> to_unmap_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<std::shared_ptr<CodeObject>> code_;
    std::vector<Copy> copies_;
    std::vector<Watch> watches_;
    std::vector<std::pair<hsa_amd_system_event_callback_t, void*>> event_handlers_;
    std::string last_trap_;
    std::atomic<void (*)()> at_end_{nullptr};
    u64 next_queue_id_ = 0;
    std::atomic<bool> stop_{false};
    std::thread processor_, copier_, events_;
};

// Null when HSA is not initialised.
std::shared_ptr<Device> device();
// The counted initialisation of hsa_init and hsa_shut_down; false when shut down more often than initialised.
bool retain_device();
bool release_device();

}  // namespace onebit::emulator
