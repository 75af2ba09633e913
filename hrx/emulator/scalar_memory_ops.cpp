// Scalar loads (SMEM).
#include <cstring>

#include "hrx/emulator/memory_access.h"
#include "hrx/emulator/trap.h"

namespace onebit::emulator {
namespace {

void load(Wave& wave, const Instruction& i) {
    u64 address = wave.scalar64(i.source[0]) + static_cast<u64>(static_cast<i64>(i.offset));
    if (i.sources > 1) address += wave.scalar(i.source[1]);
    if ((address & 3) != 0)
        raise_trap(TrapKind::misaligned, wave, i, -1,
                   "a scalar load at an address that is not a multiple of 4, whose low bits hardware ignores", address);
    u32 words[16];
    std::memcpy(words, global_pointer(wave, i, -1, address, i.destination.words * 4u, Access::load),
                i.destination.words * 4u);
    for (int k = 0; k < i.destination.words; ++k) wave.set_scalar(i.destination, words[k], k);
}

// value: words
std::string bind_load(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (auto unknown = unknown_modifier(context.text, {"offset", "glc", "dlc"}); !unknown.empty()) return unknown;
    if (operands.size() != 3) return "operand count";
    if (auto problem = bind_destination(context, operands[0], static_cast<u8>(operation.value), false, out.destination);
        !problem.empty())
        return problem;
    if (auto problem = bind_source(context, operands[1], 'q', out.source[0]); !problem.empty()) return problem;
    if (out.source[0].kind != OperandKind::sgpr) return "base " + operands[1].text;
    out.offset = offset_modifier(context.text);
    out.sources = 1;
    using Kind = AsmOperand::Kind;
    if (operands[2].kind == Kind::integer || operands[2].kind == Kind::literal) {
        out.offset += static_cast<i32>(operands[2].integer);
    } else if (operands[2].kind == Kind::sgpr) {
        if (operands[2].index != kNull) {
            if (auto problem = bind_source(context, operands[2], 'u', out.source[1]); !problem.empty()) return problem;
            out.sources = 2;
        }
    } else {
        return "offset " + operands[2].text;
    }
    out.handler = operation.handler;
    context.details.counter = Counter::scalar;
    return {};
}

const Operation kOperations[] = {
    {"s_load_b32", "", bind_load, nullptr, nullptr, nullptr, load, 1},
    {"s_load_b64", "", bind_load, nullptr, nullptr, nullptr, load, 2},
    {"s_load_b128", "", bind_load, nullptr, nullptr, nullptr, load, 4},
    {"s_load_b256", "", bind_load, nullptr, nullptr, nullptr, load, 8},
    {"s_load_b512", "", bind_load, nullptr, nullptr, nullptr, load, 16},
};

}  // namespace

std::span<const Operation> scalar_memory_operations() { return kOperations; }

}  // namespace onebit::emulator
