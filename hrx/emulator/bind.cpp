#include "hrx/emulator/bind.h"

#include <algorithm>
#include <map>

#include "hrx/emulator/value.h"

namespace onebit::emulator {
namespace {

const std::map<std::string_view, const Operation*>& operation_map() {
    static const auto map = [] {
        std::map<std::string_view, const Operation*> built;
        for (auto table : {scalar_operations(),        scalar64_operations(),       scalar_f16_operations(),
                           scalar_memory_operations(), control_operations(),        vector_f32_operations(),
                           vector_f16_operations(),    vector_f64_operations(),     vector_integer_operations(),
                           vector_packed_operations(), vector_convert_operations(), vector_carry_operations(),
                           vector_divide_operations(), compare_operations(),        lane_operations(),
                           dot_operations(),           wmma_operations(),           lds_operations(),
                           memory_operations(),        atomic_operations()})
            for (const Operation& operation : table) built.emplace(operation.mnemonic, &operation);
        return built;
    }();
    return map;
}

// 1 / (2 pi) is the one inline constant that its text does not give exactly.
bool is_inverse_two_pi(double value) { return value > 0.1591549 && value < 0.1591550; }

std::string constant_bits(const AsmOperand& operand, ValueType type, u64& bits) {
    using Kind = AsmOperand::Kind;
    const bool real = operand.kind == Kind::real;
    const double value = operand.real;
    switch (type) {
        case ValueType::f16:
        case ValueType::int16:
            bits = real ? (is_inverse_two_pi(value) ? 0x3118 : bits_of(static_cast<f16>(value)))
                        : static_cast<u16>(operand.integer);
            return {};
        case ValueType::packed_f16:
            bits = real ? (is_inverse_two_pi(value) ? 0x3118 : bits_of(static_cast<f16>(value)))
                        : static_cast<u32>(operand.integer);
            return {};
        case ValueType::packed_i16:
            if (real) return "floating-point constant in a packed integer operation";
            bits = static_cast<u32>(operand.integer);
            return {};
        case ValueType::f64:
            if (real)
                bits = is_inverse_two_pi(value) ? 0x3fc45f306dc9c882 : bits_of(value);
            else
                bits = operand.kind == Kind::literal ? static_cast<u64>(operand.integer) << 32
                                                     : static_cast<u64>(operand.integer);
            return {};
        case ValueType::bits64:
            bits = real ? bits_of(value) : static_cast<u64>(operand.integer);
            return {};
        default:
            bits = real ? (is_inverse_two_pi(value) ? 0x3e22f983 : bits_of(static_cast<float>(value)))
                        : static_cast<u32>(operand.integer);
            return {};
    }
}

}  // namespace

const Operation* find_operation(std::string_view mnemonic) {
    auto found = operation_map().find(mnemonic);
    return found == operation_map().end() ? nullptr : found->second;
}

std::vector<std::string> covered_mnemonics() {
    std::vector<std::string> names;
    for (const auto& entry : operation_map()) names.emplace_back(entry.first);
    return names;
}

ValueType value_type(char letter) {
    switch (letter) {
        case 'f':
            return ValueType::f32;
        case 'h':
            return ValueType::f16;
        case 'd':
            return ValueType::f64;
        case 'w':
            return ValueType::int16;
        case 'q':
            return ValueType::bits64;
        case 'p':
            return ValueType::packed_f16;
        case 'P':
            return ValueType::packed_i16;
        case 'x':
            return ValueType::mixed;
        case 'm':
            return ValueType::mask;
        default:
            return ValueType::bits32;
    }
}

u8 value_words(char letter) { return letter == 'd' || letter == 'q' ? 2 : 1; }

std::string bind_source(BindContext& context, const AsmOperand& operand, char letter, Operand& out) {
    using Kind = AsmOperand::Kind;
    out.type = value_type(letter);
    out.words = value_words(letter);
    out.negate = operand.negate;
    out.absolute = operand.absolute;
    switch (operand.kind) {
        case Kind::vgpr:
        case Kind::sgpr:
            if (operand.words < out.words) return "operand " + operand.text + " is too narrow";
            out.kind = operand.kind == Kind::vgpr ? OperandKind::vgpr : OperandKind::sgpr;
            out.index = operand.index;
            note_read(context, out);
            return {};
        case Kind::integer:
        case Kind::literal:
        case Kind::real:
            out.kind = OperandKind::constant;
            return constant_bits(operand, out.type, out.constant);
        default:
            return "operand '" + operand.text + "'";
    }
}

void finish_source(BindContext& context, Operand& operand) {
    const bool changed =
        operand.negate || operand.negate_high || operand.absolute || operand.select ||
        operand.type == ValueType::mixed || operand.type == ValueType::mask ||
        ((operand.type == ValueType::packed_f16 || operand.type == ValueType::packed_i16) && !operand.select_high);
    operand.plain = operand.kind == OperandKind::vgpr && !changed;
    if (operand.kind != OperandKind::constant) return;
    operand.constant = prepare_value(operand, operand.constant);
    auto& lanes = context.program.constants.emplace_back(2 * kLanes);
    std::fill(lanes.begin(), lanes.begin() + kLanes, static_cast<u32>(operand.constant));
    std::fill(lanes.begin() + kLanes, lanes.end(), static_cast<u32>(operand.constant >> 32));
    operand.lanes = lanes.data();
}

std::string bind_destination(BindContext& context, const AsmOperand& operand, u8 words, bool vector, Operand& out) {
    const auto wanted = vector ? AsmOperand::Kind::vgpr : AsmOperand::Kind::sgpr;
    if (operand.kind != wanted) return "destination '" + operand.text + "'";
    if (operand.index != kNull && operand.words < words) return "destination " + operand.text + " is too narrow";
    if (!vector && operand.index > kScalarRegisters) return "destination " + operand.text;
    out.kind = vector ? OperandKind::vgpr : OperandKind::sgpr;
    out.index = operand.index;
    out.words = words;
    note_write(context, out);
    return {};
}

void note_read(BindContext& context, const Operand& operand, bool all_lanes, bool checked_by_handler) {
    if (operand.kind == OperandKind::constant || operand.kind == OperandKind::none) return;
    if (operand.kind == OperandKind::sgpr && (operand.index == kNull || operand.index >= kScalarRegisters)) return;
    context.details.reads.push_back(
        {operand.kind == OperandKind::vgpr, all_lanes, checked_by_handler, false, operand.index, operand.words});
}

void note_write(BindContext& context, const Operand& operand, bool all_lanes) {
    if (operand.kind == OperandKind::none || (operand.kind == OperandKind::sgpr && operand.index == kNull)) return;
    context.details.writes.push_back(
        {operand.kind == OperandKind::vgpr, all_lanes, false, false, operand.index, operand.words});
}

void propagate_undefined(BindContext& context) {
    for (RegisterUse& use : context.details.reads) use.propagates = use.words == 2;
}

Operand scalar_register(u16 index, u8 words) {
    Operand operand;
    operand.kind = OperandKind::sgpr;
    operand.index = index;
    operand.words = words;
    return operand;
}

Operand vector_register(u16 index, u8 words) {
    Operand operand;
    operand.kind = OperandKind::vgpr;
    operand.index = index;
    operand.words = words;
    operand.plain = true;
    return operand;
}

i32 offset_modifier(const AsmInstruction& text, std::string_view name) {
    const std::string* value = text.modifier(name);
    return value == nullptr ? 0 : static_cast<i32>(parse_number(*value).value_or(0));
}

std::string unknown_modifier(const AsmInstruction& text, std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : text.modifiers)
        if (std::find(known.begin(), known.end(), name) == known.end())
            return "modifier '" + name + (value.empty() ? "'" : ":" + value + "'");
    return {};
}

}  // namespace onebit::emulator
