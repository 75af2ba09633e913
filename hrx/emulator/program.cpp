#include "hrx/emulator/program.h"

#include "hrx/emulator/bind.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {
namespace {

void unknown(Wave& wave, const Instruction& instruction) {
    const Details& details = wave.program->details[instruction.index];
    raise_trap(TrapKind::unknown_instruction, wave, instruction, -1,
               "the emulator does not interpret this: " + details.problem);
}

std::string bind_instruction(Program& program, const Decoded& decoded, Instruction& out, Details& details) {
    auto parts = parse_assembly(decoded.text);
    if (!parts) return "text of the instruction";
    BindContext context{parts->front(), decoded, program, out, details};
    if (parts->size() == 2) return bind_dual(context, parts->front(), parts->back());
    const Operation* operation = find_operation(parts->front().mnemonic);
    if (operation == nullptr) return "opcode " + parts->front().mnemonic;
    return operation->bind(context, *operation);
}

}  // namespace

Result<std::unique_ptr<Program>> build_program(std::span<const u8> text, u64 base, u64 pc,
                                               const std::string& processor) {
    auto decoder = Decoder::create(processor);
    if (!decoder) return std::move(decoder).error();
    auto program = std::make_unique<Program>();
    program->base = base;
    program->pc = pc;
    program->index_of_word.assign(text.size() / 4, Program::kNoInstruction);

    for (std::size_t at = 0; at + 4 <= text.size();) {
        Instruction instruction;
        Details details;
        details.pc = pc + at;
        auto decoded = decoder->decode(text.subspan(at), pc + at);
        std::string problem;
        u32 bytes = 4;
        if (decoded && decoded->bytes % 4 == 0 && decoded->bytes >= 4) {
            bytes = decoded->bytes;
            details.text = decoded->text;
            problem = bind_instruction(*program, *decoded, instruction, details);
        } else {
            details.text = "(not an instruction)";
            problem = "bytes that LLVM does not decode for " + processor;
        }
        instruction.index = static_cast<u32>(program->code.size());
        instruction.next_pc = base + at + bytes;
        if (!problem.empty()) {
            instruction.handler = unknown;
            details = Details{details.text, details.pc, {}, {}, Counter::none, false, true, problem};
        }
        program->index_of_word[at / 4] = instruction.index;
        program->code.push_back(instruction);
        program->details.push_back(std::move(details));
        at += bytes;
    }

    for (Instruction& instruction : program->code)
        if (instruction.target == Program::kNoInstruction)
            instruction.target =
                program->at(instruction.next_pc + static_cast<u64>(static_cast<i64>(instruction.offset)));

    // a wave that runs off the end of the text meets this one
    Instruction end;
    end.handler = unknown;
    end.index = static_cast<u32>(program->code.size());
    program->code.push_back(end);
    program->details.push_back(
        Details{"(end of the code)", pc + text.size(), {}, {}, Counter::none, false, true, "nothing follows"});
    return program;
}

}  // namespace onebit::emulator
