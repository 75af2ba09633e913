// One thread's registers, LDS and checks, reused from group to group.
#pragma once

#include <memory>
#include <vector>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/engine.h"
#include "hrx/emulator/lds_races.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

class Engine::Worker {
public:
    Worker(const MemoryMap& memory, const Settings& settings) : settings_(settings), port_(memory) {}

    // Throws TrapError. Returns the wave instructions executed.
    u64 run_group(const Dispatch& dispatch, u32 x, u32 y, u32 z);

private:
    struct Slot {
        std::unique_ptr<Wave> wave = std::make_unique<Wave>();
        WaveChecks checks;
        std::vector<u8> scratch;
    };
    void start_wave(const Dispatch& dispatch, Slot& slot, u32 number, const u32* size);
    void start_registers(const Dispatch& dispatch, Wave& wave);
    void run_fast(Wave& wave, u32 quantum);
    void run_checked(Wave& wave, u32 quantum);
    bool step_all(u32 waves);

    const Settings& settings_;
    MemoryPort port_;
    LdsRaces races_;
    Workgroup group_;
    std::vector<Slot> slots_;
};

}  // namespace onebit::emulator
