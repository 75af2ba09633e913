// Runs a dispatch: groups over worker threads, waves of a group in turn, each until its barrier or its end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "hrx/emulator/code_object.h"
#include "hrx/emulator/memory_map.h"
#include "hrx/emulator/trap.h"

namespace onebit::emulator {

enum class Mode {
    checked,  // traps on waits, races, undefined values; the default
    fast,     // traps on unknown instructions and on addresses only; same results
};

struct Settings {
    Mode mode = Mode::checked;
    u32 workers = 2;
    u64 instructions_per_wave = u64{1} << 32;  // more is taken for an endless loop
    std::string chip = "gfx1151";              // the only one whose code is taken, as ROCr does
};
// ONEBIT_EMULATOR_MODE (checked, fast), ONEBIT_EMULATOR_THREADS (1 to 64), ONEBIT_EMULATOR_LIMIT (instructions a wave),
// ONEBIT_EMULATOR_CHIP (gfx1100 to gfx1103, gfx1150 to gfx1152).
// A value that is none of these gives the default and a line in the log.
Settings settings_from_environment();

struct Dispatch {
    const Kernel* kernel = nullptr;
    u32 grid[3] = {1, 1, 1};   // work-items
    u32 group[3] = {1, 1, 1};  // work-items
    u32 group_bytes = 0;       // LDS
    u32 private_bytes = 0;     // scratch of a work-item
    u64 kernarg = 0;
    u64 packet = 0;  // address of the dispatch packet, for kernels that ask for it
    u64 queue = 0;
    u64 id = 0;
};

class Engine {
public:
    Engine(const MemoryMap& memory, Settings settings);
    ~Engine();

    // Blocks until the dispatch has ended. nullopt: it ran to its end. One dispatch at a time.
    std::optional<Trap> run(const Dispatch& dispatch);

    // Wave instructions executed so far, by all workers.
    u64 instructions() const { return instructions_.load(std::memory_order_relaxed); }
    const Settings& settings() const { return settings_; }

private:
    class Worker;
    void help(Worker& worker, const Dispatch& dispatch);
    void thread_main(Worker& worker);

    const MemoryMap& memory_;
    const Settings settings_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable idle_;
    const Dispatch* current_ = nullptr;
    u64 generation_ = 0;
    u32 busy_ = 0;
    bool stop_ = false;
    std::atomic<u64> next_group_{0};
    u64 groups_ = 0;
    std::atomic<bool> trapped_{false};
    std::optional<Trap> trap_;
    std::atomic<u64> instructions_{0};
};

}  // namespace onebit::emulator
