// Reads one line of AMDGPU assembly as LLVM prints it (syntax: LLVM's "AMDGPU Operand Syntax" and "Modifier Syntax").
// The text names every operand and modifier of an instruction in the ISA reference's terms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct AsmOperand {
    enum class Kind : u8 {
        vgpr,
        sgpr,     // index is an operand encoding: also vcc, exec, m0, null and the read-only ones
        integer,  // decimal: an inline constant or an immediate
        literal,  // hexadecimal: 32 bits that follow the instruction
        real,     // an inline floating-point constant
        off,      // no address register
        other,    // named values of s_waitcnt, s_sendmsg and the like
    };
    Kind kind = Kind::other;
    u16 index = 0;
    u8 words = 1;
    bool negate = false;
    bool absolute = false;
    i64 integer = 0;
    double real = 0;
    std::string text;
};

struct AsmInstruction {
    std::string mnemonic;  // without _e32, _e64, _dpp
    bool dpp = false;
    std::vector<AsmOperand> operands;
    std::vector<std::pair<std::string, std::string>> modifiers;  // "offset" and "16"; "clamp" and ""

    // Null when absent.
    const std::string* modifier(std::string_view name) const;
    bool has(std::string_view name) const { return modifier(name) != nullptr; }
};

// One element, or the two of a dual instruction ("x :: y"). nullopt when the text is not understood.
std::optional<std::vector<AsmInstruction>> parse_assembly(std::string_view text);

// "[1,0,1]" as numbers; nullopt when it is none.
std::optional<std::vector<int>> parse_list(std::string_view text);
// "16", "-16" or "0x10"; nullopt when it is none.
std::optional<i64> parse_number(std::string_view text);

}  // namespace onebit::emulator
