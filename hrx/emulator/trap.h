// What the emulator reports instead of going on: an instruction that it does not know, or an act that hardware would
// not forgive. Raised as an exception inside this room; dispatch.cpp catches it and stops the dispatch.
#pragma once

#include <exception>
#include <string>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Wave;
struct Instruction;

enum class TrapKind {
    unknown_instruction,  // no interpretation of this opcode, operand or modifier
    out_of_bounds,        // address outside of every allocation, LDS or scratch
    misaligned,           // atomics and scalar loads at an address that hardware would round or refuse
    uninitialised,        // a register lane or an LDS byte that nothing has written
    missing_wait,         // a register still owned by a memory instruction in flight
    lds_race,             // two waves, one LDS byte, no barrier between them
    register_range,       // a register above those that the kernel allocates
    bad_state,            // anything else undefined: no wave to meet at a barrier, an empty EXEC for a lane read
    runaway,              // more instructions than the limit
};
const char* to_string(TrapKind kind);

struct Trap {
    TrapKind kind = TrapKind::bad_state;
    std::string kernel;
    std::string instruction;  // its text in assembly
    u64 pc = 0;               // offset from the start of the code object's image
    u32 group[3] = {};
    u32 wave = 0;   // in the group
    int lane = -1;  // -1: the whole wave
    u64 address = 0;
    std::string detail;  // what was expected and found

    // One line that names all of the above.
    std::string message() const;
};

class TrapError : public std::exception {
public:
    explicit TrapError(Trap trap) : trap_(std::move(trap)), text_(trap_.message()) {}
    const Trap& trap() const { return trap_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    Trap trap_;
    std::string text_;
};

// lane: -1 for the whole wave.
[[noreturn]] void raise_trap(TrapKind kind, const Wave& wave, const Instruction& instruction, int lane,
                             std::string detail, u64 address = 0);

}  // namespace onebit::emulator
