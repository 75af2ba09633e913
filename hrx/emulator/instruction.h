// A machine instruction as the interpreter runs it: operands resolved, handler chosen. Built once by program.cpp.
#pragma once

#include <string>
#include <vector>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Wave;
struct Instruction;

// Runs one instruction of one wave.
using Handler = void (*)(Wave&, const Instruction&);
// d[lane] = f(a[lane], b[lane], c[lane]) for 32 lanes; second words of 64-bit values are 32 words behind. d may be one
// of the sources when results are one word.
using LaneFunction = void (*)(u32* d, const u32* a, const u32* b, const u32* c);
// Bit per lane of a comparison.
using CompareFunction = u32 (*)(const u32* a, const u32* b);

enum class OperandKind : u8 { none, vgpr, sgpr, constant };

// How a source is read before the operation sees it: decides which bit is the sign.
// mask: a scalar register with a bit per lane, read as 0 or 1.
enum class ValueType : u8 { bits32, bits64, int16, f32, f16, f64, packed_f16, packed_i16, mixed, mask };

struct Operand {
    OperandKind kind = OperandKind::none;
    u8 words = 1;
    ValueType type = ValueType::bits32;
    bool negate = false;         // floats; for packed values the low half
    bool negate_high = false;    // packed values
    bool absolute = false;       // floats
    bool select = false;         // op_sel: the high half is the (low) value
    bool select_high = false;    // op_sel_hi: the high half is the high value
    bool plain = false;          // a VGPR that needs none of the above
    u16 index = 0;               // register number, or the encoding of a special register
    u64 constant = 0;            // prepared: modifiers applied
    const u32* lanes = nullptr;  // a constant's 64 words (32 times low, 32 times high), owned by the program
};

struct Dpp {
    u16 control = 0;    // encoding of DPP_CTRL; 0x200: eight selectors of three bits in `selectors`
    u32 selectors = 0;  // DPP8
    u8 row_mask = 0xf;
    u8 bank_mask = 0xf;
    bool bound_control = false;
    bool fetch_inactive = false;
};

enum class Half : u8 { whole, low, high };  // which half of a destination register a 16-bit result is written to

struct Instruction {
    Handler handler = nullptr;
    union {
        LaneFunction lanes;
        CompareFunction compare;
        u32 (*scalar)(u32, u32, u32);
    } run{};
    LaneFunction lanes_y = nullptr;  // second half of a dual instruction
    Operand destination;
    Operand destination2;
    Operand source[6];  // a dual instruction's second half begins at 3
    u8 sources = 0;
    u8 sources_y = 0;
    bool direct = false;  // a full wave may write straight to the destination
    bool clamp = false;
    Half half = Half::whole;
    u8 bytes = 0;           // memory: bytes a lane
    bool returns = false;   // atomics: the old value goes to the destination
    bool permuted = false;  // comparisons: the first source goes through DPP
    u16 immediate = 0;      // simm16, message, wait counters
    u32 target = 0;         // branches: index of the instruction there
    u32 index = 0;          // own index in the program
    i32 offset = 0;         // bytes
    i32 offset1 = 0;        // bytes
    u64 next_pc = 0;        // address behind this instruction
    Dpp dpp;
};

// A register that an instruction reads or writes, for the checks.
struct RegisterUse {
    bool vector = false;
    bool all_lanes = false;  // regardless of EXEC
    bool checked_by_handler = false;
    // a 64-bit integer of which compilers may leave the high word undefined: the result's words are then undefined too
    bool propagates = false;
    u16 index = 0;
    u8 words = 1;
};

enum class Counter : u8 { none, vector_load, vector_store, lds, scalar, flat_load, flat_store };

// What the checks and messages need, kept apart from what every step reads.
struct Details {
    std::string text;
    u64 pc = 0;
    std::vector<RegisterUse> reads;
    std::vector<RegisterUse> writes;
    Counter counter = Counter::none;
    bool copies = false;  // a plain move: undefined bits travel instead of trapping
    bool unknown = false;
    std::string problem;  // why it is unknown
};

}  // namespace onebit::emulator
