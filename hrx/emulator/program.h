// All instructions of a code object's text, ready to run.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/emulator/instruction.h"

namespace onebit::emulator {

struct Program {
    u64 base = 0;  // address of the text's first byte
    u64 pc = 0;    // offset of the text in the image, for messages
    std::vector<Instruction> code;
    std::vector<Details> details;
    std::vector<u32> index_of_word;  // instruction that starts at each 4 bytes of the text; kNoInstruction for none
    std::deque<std::vector<u32>> constants;

    static constexpr u32 kNoInstruction = 0xffffffffu;
    // kNoInstruction when no instruction starts at the address.
    u32 at(u64 address) const {
        const u64 word = (address - base) / 4;
        if (address < base || (address & 3) != 0 || word >= index_of_word.size()) return kNoInstruction;
        return index_of_word[word];
    }
};

// text: the code; base: the address at which it runs; pc: see Program. An instruction that is not understood becomes
// one that traps when it is run. Error only when LLVM lacks the processor.
Result<std::unique_ptr<Program>> build_program(std::span<const u8> text, u64 base, u64 pc,
                                               const std::string& processor);

}  // namespace onebit::emulator
