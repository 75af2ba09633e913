// Finds bytes of a group's LDS that two waves touch without a barrier between (one of them writing, not both atomic),
// and bytes that are read before they are written. Two accesses are ordered when the waves have passed different
// numbers of barriers. One object a worker, reused for every group.
#pragma once

#include <vector>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Wave;
struct Instruction;

class LdsRaces {
public:
    // bytes: size of the group's LDS.
    void reset(u32 bytes);
    void read(const Wave& wave, const Instruction& instruction, int lane, u32 address, u32 bytes, bool atomic);
    void write(const Wave& wave, const Instruction& instruction, int lane, u32 address, u32 bytes, bool atomic);
    // A store that its wave did not wait for before a barrier counts as made behind it.
    void carry_over(const Wave& wave, u32 address, u32 bytes);

private:
    struct Cell {
        u32 generation = 0;  // of the group; older cells are empty
        u32 written_at = 0;  // barriers passed by the writer
        u32 read_at = 0;
        u32 readers = 0;  // waves that read since `read_at`
        u8 writer = 0;
        bool written = false;
        bool write_atomic = false;
        bool read_atomic = false;  // all those reads were atomic
    };
    Cell& cell(u32 address);

    std::vector<Cell> cells_;
    u32 generation_ = 0;
};

}  // namespace onebit::emulator
