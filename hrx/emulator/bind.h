// Turns the text of an instruction into operands and a handler. Each file of operations brings a table of rows.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hrx/emulator/asm_text.h"
#include "hrx/emulator/decoder.h"
#include "hrx/emulator/instruction.h"
#include "hrx/emulator/program.h"

namespace onebit::emulator {

struct BindContext {
    const AsmInstruction& text;
    const Decoded& decoded;
    Program& program;
    Instruction& out;
    Details& details;
};

// Binds one mnemonic. Returns what is not supported, empty when all is.
using Bind = std::string (*)(BindContext& context, const struct Operation& operation);

// Signature: result, colon, sources. f f32, h f16, d f64, u 32-bit, w 16-bit integer, q 64-bit integer, p two f16,
// P two 16-bit integers, x f16 or f32 by op_sel_hi, m lane mask (VCC when the text has none), a the old destination
// (not in the text), 'c' behind the result: a mask of carries comes with it.
struct Operation {
    const char* mnemonic;
    const char* signature;
    Bind bind;
    LaneFunction lanes = nullptr;
    CompareFunction compare = nullptr;
    u32 (*scalar)(u32, u32, u32) = nullptr;
    Handler handler = nullptr;
    u32 value = 0;  // for the binder: bytes, flags
};

// The operation of a mnemonic; null when there is none.
const Operation* find_operation(std::string_view mnemonic);
// Every mnemonic that is interpreted, sorted; for the coverage list.
std::vector<std::string> covered_mnemonics();

// Tables, one a file.
std::span<const Operation> scalar_operations();
std::span<const Operation> scalar64_operations();
std::span<const Operation> scalar_f16_operations();
std::span<const Operation> scalar_memory_operations();
std::span<const Operation> control_operations();
std::span<const Operation> vector_f32_operations();
std::span<const Operation> vector_f16_operations();
std::span<const Operation> vector_f64_operations();
std::span<const Operation> vector_integer_operations();
std::span<const Operation> vector_packed_operations();
std::span<const Operation> vector_convert_operations();
std::span<const Operation> vector_carry_operations();
std::span<const Operation> vector_divide_operations();
std::span<const Operation> compare_operations();
std::span<const Operation> lane_operations();
std::span<const Operation> dot_operations();
std::span<const Operation> wmma_operations();
std::span<const Operation> lds_operations();
std::span<const Operation> memory_operations();
std::span<const Operation> atomic_operations();

// ---- helpers of the binders ----

ValueType value_type(char letter);
u8 value_words(char letter);

// Fills `out` from a source as the text shows it and notes the read. Returns the problem, empty when there is none.
std::string bind_source(BindContext& context, const AsmOperand& operand, char letter, Operand& out);
// Prepares constants once modifiers are known (bind_source has set negate and absolute).
void finish_source(BindContext& context, Operand& operand);
// A register that is written.
std::string bind_destination(BindContext& context, const AsmOperand& operand, u8 words, bool vector, Operand& out);

void note_read(BindContext& context, const Operand& operand, bool all_lanes = false, bool checked_by_handler = false);
void note_write(BindContext& context, const Operand& operand, bool all_lanes = false);
// For operations on 64-bit integers whose low result word depends on low words only.
void propagate_undefined(BindContext& context);
Operand scalar_register(u16 index, u8 words = 1);
Operand vector_register(u16 index, u8 words = 1);

// Reads "offset:N"; 0 when absent.
i32 offset_modifier(const AsmInstruction& text, std::string_view name = "offset");
// A modifier of the text that is not in `known`, empty when there is none.
std::string unknown_modifier(const AsmInstruction& text, std::initializer_list<std::string_view> known);

// Binders shared by several tables.
std::string bind_vector(BindContext& context, const Operation& operation);
std::string bind_compare(BindContext& context, const Operation& operation);
std::string bind_scalar(BindContext& context, const Operation& operation);
std::string bind_dual(BindContext& context, const AsmInstruction& x, const AsmInstruction& y);
std::string bind_dpp(const AsmInstruction& text, Dpp& out);

}  // namespace onebit::emulator
