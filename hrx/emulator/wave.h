// State of a wave of 32 lanes and of the group that it belongs to. One thread runs a group at a time.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "hrx/emulator/instruction.h"
#include "hrx/emulator/memory_map.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Program;
struct Workgroup;
class WaveChecks;
class LdsRaces;

enum class WaveState : u8 { running, at_barrier, done };

struct alignas(64) Wave {
    u32 v[256][kLanes];
    u32 s[kScalarRegisters + 2];
    bool scc = false;
    WaveState state = WaveState::running;
    u32 next = 0;  // index of the instruction to run
    u32 number = 0;
    u32 barriers = 0;  // passed so far
    u64 instructions = 0;
    const Program* program = nullptr;
    Workgroup* group = nullptr;
    WaveChecks* checks = nullptr;        // null in fast mode
    std::vector<u8>* scratch = nullptr;  // lane after lane
    u32 scratch_bytes = 0;               // a lane

    u32 exec() const { return s[kExec]; }

    u32 scalar(const Operand& o, int word = 0) const {
        if (o.kind == OperandKind::constant) return static_cast<u32>(o.constant >> (32 * word));
        if (o.index < kScalarRegisters) return s[o.index + word];
        return special(o.index, word);
    }
    u64 scalar64(const Operand& o) const {
        if (o.kind == OperandKind::constant) return o.constant;
        return scalar(o, 0) | static_cast<u64>(scalar(o, 1)) << 32;
    }
    void set_scalar(const Operand& o, u32 value, int word = 0) {
        // null, and its second word for 64-bit results, which must not reach EXEC
        if (o.index == kNull) return;
        s[o.index + word] = value;
    }
    void set_scalar64(const Operand& o, u64 value) {
        set_scalar(o, static_cast<u32>(value), 0);
        set_scalar(o, static_cast<u32>(value >> 32), 1);
    }
    u32 special(u16 encoding, int word) const;
};

struct Workgroup {
    u32 id[3] = {};
    std::vector<u8> lds;
    std::vector<Wave*> waves;
    LdsRaces* races = nullptr;  // null in fast mode
    MemoryPort* memory = nullptr;
    const char* kernel = "";
    u32 vector_registers = 256;
};

}  // namespace onebit::emulator
