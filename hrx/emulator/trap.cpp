#include "hrx/emulator/trap.h"

#include <cstdio>

#include "hrx/emulator/program.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

const char* to_string(TrapKind kind) {
    switch (kind) {
        case TrapKind::unknown_instruction:
            return "unknown instruction";
        case TrapKind::out_of_bounds:
            return "out of bounds";
        case TrapKind::misaligned:
            return "misaligned";
        case TrapKind::uninitialised:
            return "uninitialised";
        case TrapKind::missing_wait:
            return "missing wait";
        case TrapKind::lds_race:
            return "LDS race";
        case TrapKind::register_range:
            return "register range";
        case TrapKind::bad_state:
            return "bad state";
        case TrapKind::runaway:
            return "runaway";
    }
    return "trap";
}

std::string Trap::message() const {
    char place[160];
    std::snprintf(place, sizeof(place), " at 0x%llx, group (%u, %u, %u), wave %u", static_cast<unsigned long long>(pc),
                  group[0], group[1], group[2], wave);
    std::string text = std::string(to_string(kind)) + " in kernel " + kernel + place;
    if (lane >= 0) text += ", lane " + std::to_string(lane);
    return text + ": '" + instruction + "': " + detail;
}

void raise_trap(TrapKind kind, const Wave& wave, const Instruction& instruction, int lane, std::string detail,
                u64 address) {
    Trap trap;
    trap.kind = kind;
    trap.lane = lane;
    trap.address = address;
    trap.detail = std::move(detail);
    trap.wave = wave.number;
    if (wave.group != nullptr) {
        trap.kernel = wave.group->kernel;
        for (int k = 0; k < 3; ++k) trap.group[k] = wave.group->id[k];
    }
    if (wave.program != nullptr && instruction.index < wave.program->details.size()) {
        trap.instruction = wave.program->details[instruction.index].text;
        trap.pc = wave.program->details[instruction.index].pc;
    }
    throw TrapError(std::move(trap));
}

}  // namespace onebit::emulator
