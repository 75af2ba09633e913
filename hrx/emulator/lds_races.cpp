#include "hrx/emulator/lds_races.h"

#include <bit>
#include <string>

#include "hrx/emulator/trap.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {
namespace {

[[noreturn]] void race(const Wave& wave, const Instruction& instruction, int lane, u32 address, const char* what,
                       u32 other) {
    raise_trap(TrapKind::lds_race, wave, instruction, lane,
               "LDS byte " + std::to_string(address) + " is " + what + " by wave " + std::to_string(other) +
                   " since the last barrier; expected s_waitcnt lgkmcnt(0) and s_barrier between",
               address);
}

}  // namespace

void LdsRaces::reset(u32 bytes) {
    if (cells_.size() < bytes) cells_.resize(bytes);
    if (++generation_ == 0) {
        cells_.assign(cells_.size(), Cell());
        generation_ = 1;
    }
}

LdsRaces::Cell& LdsRaces::cell(u32 address) {
    Cell& cell = cells_[address];
    if (cell.generation != generation_) {
        cell = Cell();
        cell.generation = generation_;
    }
    return cell;
}

void LdsRaces::read(const Wave& wave, const Instruction& instruction, int lane, u32 address, u32 bytes, bool atomic) {
    for (u32 k = 0; k < bytes; ++k) {
        Cell& c = cell(address + k);
        if (!c.written)
            raise_trap(TrapKind::uninitialised, wave, instruction, lane,
                       "LDS byte " + std::to_string(address + k) + " is read before anything wrote it", address + k);
        if (c.written_at >= wave.barriers && c.writer != wave.number && !(c.write_atomic && atomic))
            race(wave, instruction, lane, address + k, "written", c.writer);
        if (c.read_at != wave.barriers || c.readers == 0) {
            c.read_at = wave.barriers;
            c.readers = 0;
            c.read_atomic = true;
        }
        c.readers |= 1u << wave.number;
        c.read_atomic = c.read_atomic && atomic;
    }
}

void LdsRaces::write(const Wave& wave, const Instruction& instruction, int lane, u32 address, u32 bytes, bool atomic) {
    const u32 self = 1u << wave.number;
    for (u32 k = 0; k < bytes; ++k) {
        Cell& c = cell(address + k);
        if (c.written && c.written_at >= wave.barriers && c.writer != wave.number && !(c.write_atomic && atomic))
            race(wave, instruction, lane, address + k, "written", c.writer);
        if (c.read_at == wave.barriers && (c.readers & ~self) != 0 && !(c.read_atomic && atomic))
            race(wave, instruction, lane, address + k, "read", static_cast<u32>(std::countr_zero(c.readers & ~self)));
        c.written = true;
        c.written_at = wave.barriers;
        c.writer = static_cast<u8>(wave.number);
        c.write_atomic = atomic;
    }
}

void LdsRaces::carry_over(const Wave& wave, u32 address, u32 bytes) {
    for (u32 k = 0; k < bytes; ++k) {
        Cell& c = cell(address + k);
        if (c.written && c.writer == wave.number) c.written_at = wave.barriers + 1;
    }
}

}  // namespace onebit::emulator
