// Comparisons: a bit a lane into a scalar register (V_CMP) or into EXEC (V_CMPX).
#include <cmath>

#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

template <auto F>
u32 compare_words(const u32* a, const u32* b) {
    u32 mask = 0;
    for (int lane = 0; lane < kLanes; ++lane) mask |= F(a[lane], b[lane]) ? 1u << lane : 0;
    return mask;
}
template <auto F>
u32 compare_wide(const u32* a, const u32* b) {
    u32 mask = 0;
    for (int lane = 0; lane < kLanes; ++lane) mask |= F(wide_at(a, lane), wide_at(b, lane)) ? 1u << lane : 0;
    return mask;
}

// How each type reads its register.
struct F32 {
    static float get(u32 x) { return as_f32(x); }
};
struct F16 {
    static float get(u32 x) { return static_cast<float>(as_f16(x)); }
};
struct F64 {
    static double get(u64 x) { return as_f64(x); }
};
struct I32 {
    static i32 get(u32 x) { return static_cast<i32>(x); }
};
struct U32 {
    static u32 get(u32 x) { return x; }
};
struct I16 {
    static i32 get(u32 x) { return static_cast<i16>(x); }
};
struct U16 {
    static u32 get(u32 x) { return x & 0xffff; }
};
struct I64 {
    static i64 get(u64 x) { return static_cast<i64>(x); }
};
struct U64 {
    static u64 get(u64 x) { return x; }
};

// Bits of the class mask: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, +0, +denormal, +normal,
// +infinity.
template <int Mantissa, int Exponent>
u32 class_bit(u64 bits) {
    const u64 mantissa = bits & ((u64{1} << Mantissa) - 1);
    const u64 exponent = bits >> Mantissa & ((u64{1} << Exponent) - 1);
    const bool negative = (bits >> (Mantissa + Exponent) & 1) != 0;
    if (exponent == (u64{1} << Exponent) - 1) {
        if (mantissa != 0) return (mantissa >> (Mantissa - 1) & 1) != 0 ? 2 : 1;
        return negative ? 4 : 0x200;
    }
    if (exponent != 0) return negative ? 8 : 0x100;
    if (mantissa != 0) return negative ? 0x10 : 0x80;
    return negative ? 0x20 : 0x40;
}

u32 class_f32(const u32* a, const u32* b) {
    return compare_words<[](u32 x, u32 y) { return (class_bit<23, 8>(x) & y) != 0; }>(a, b);
}
u32 class_f16(const u32* a, const u32* b) {
    return compare_words<[](u32 x, u32 y) { return (class_bit<10, 5>(x & 0xffff) & y) != 0; }>(a, b);
}
u32 class_f64(const u32* a, const u32* b) {
    u32 mask = 0;
    for (int lane = 0; lane < kLanes; ++lane)
        mask |= (class_bit<52, 11>(wide_at(a, lane)) & b[lane]) != 0 ? 1u << lane : 0;
    return mask;
}

void execute_compare(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[2][2 * kLanes];
    const u32 exec = wave.exec();
    const u32* a;
    u32 written = exec;
    if (i.permuted) {
        written = permute_dpp(wave, i, i.source[0], buffers[0]);
        a = buffers[0];
    } else {
        a = fetch(wave, i.source[0], buffers[0]);
    }
    const u32* b = fetch(wave, i.source[1], buffers[1]);
    wave.set_scalar(i.destination, i.run.compare(a, b) & written & exec);
}

}  // namespace

std::string bind_compare(BindContext& context, const Operation& operation) {
    const AsmInstruction& text = context.text;
    Instruction& out = context.out;
    const std::string_view letters = std::string_view(operation.signature).substr(2);
    if (auto unknown = unknown_modifier(
            text, {"op_sel", "quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_share",
                   "row_xmask", "row_mask", "bank_mask", "bound_ctrl", "fi", "dpp8"});
        !unknown.empty())
        return unknown;
    std::size_t next = 0;
    if (std::string_view(operation.mnemonic).starts_with("v_cmpx")) {
        out.destination = scalar_register(kExec);
        note_write(context, out.destination);
    } else {
        if (text.operands.empty()) return "no operands";
        if (auto problem = bind_destination(context, text.operands[next++], 1, false, out.destination);
            !problem.empty())
            return problem;
    }
    if (text.operands.size() != next + 2) return "operand count";
    for (int k = 0; k < 2; ++k)
        if (auto problem = bind_source(context, text.operands[next + k], letters[k], out.source[k]); !problem.empty())
            return problem;
    if (const std::string* select = text.modifier("op_sel")) {
        auto bits = parse_list(*select);
        if (!bits || bits->size() < 2) return "op_sel:" + *select;
        for (int k = 0; k < 2; ++k) out.source[k].select = (*bits)[k] != 0;
    }
    for (int k = 0; k < 2; ++k) finish_source(context, out.source[k]);
    out.sources = 2;
    out.run.compare = operation.compare;
    out.handler = execute_compare;
    if (!text.dpp) return {};
    if (out.source[0].kind != OperandKind::vgpr || out.source[0].words != 1) return "DPP operands";
    context.details.reads.front().checked_by_handler = true;
    out.permuted = true;
    return bind_dpp(text, out.dpp);
}

namespace {

#define COMPARE(prefix, condition, name, letter, compare_all, ...)            \
    {                                                                         \
        prefix condition "_" name, "m:" letter letter, bind_compare, nullptr, \
            compare_all<[](auto a, auto b) { return __VA_ARGS__; }>           \
    }

#define COMPARES(prefix, name, type, letter, all)                                 \
    COMPARE(prefix, "lt", name, letter, all, (type::get(a) < type::get(b))),      \
        COMPARE(prefix, "eq", name, letter, all, (type::get(a) == type::get(b))), \
        COMPARE(prefix, "le", name, letter, all, (type::get(a) <= type::get(b))), \
        COMPARE(prefix, "gt", name, letter, all, (type::get(a) > type::get(b))),  \
        COMPARE(prefix, "ge", name, letter, all, (type::get(a) >= type::get(b)))

// False and true for everything; 16-bit integers do not have them.
#define CONSTANTS(prefix, name, letter, all)                            \
    COMPARE(prefix, "f", name, letter, all, ((void)a, (void)b, false)), \
        COMPARE(prefix, "t", name, letter, all, ((void)a, (void)b, true))

#define INTEGER_COMPARES(prefix, name, type, letter, all) \
    COMPARES(prefix, name, type, letter, all), COMPARE(prefix, "ne", name, letter, all, (type::get(a) != type::get(b)))

// The names with n are true for NaN: not less than, and so on; lg is less or greater; o and u ordered and not.
#define FLOAT_COMPARES(prefix, name, type, letter, all)                                                               \
    COMPARES(prefix, name, type, letter, all), CONSTANTS(prefix, name, letter, all),                                  \
        COMPARE(prefix, "lg", name, letter, all, (type::get(a) < type::get(b)) || (type::get(a) > type::get(b))),     \
        COMPARE(prefix, "o", name, letter, all, !std::isunordered(type::get(a), type::get(b))),                       \
        COMPARE(prefix, "u", name, letter, all, std::isunordered(type::get(a), type::get(b))),                        \
        COMPARE(prefix, "nge", name, letter, all, !(type::get(a) >= type::get(b))),                                   \
        COMPARE(prefix, "nlg", name, letter, all, !((type::get(a) < type::get(b)) || (type::get(a) > type::get(b)))), \
        COMPARE(prefix, "ngt", name, letter, all, !(type::get(a) > type::get(b))),                                    \
        COMPARE(prefix, "nle", name, letter, all, !(type::get(a) <= type::get(b))),                                   \
        COMPARE(prefix, "neq", name, letter, all, !(type::get(a) == type::get(b))),                                   \
        COMPARE(prefix, "nlt", name, letter, all, !(type::get(a) < type::get(b)))

#define ALL_COMPARES(prefix)                                                                                           \
    INTEGER_COMPARES(prefix, "i32", I32, "u", compare_words), CONSTANTS(prefix, "i32", "u", compare_words),            \
        INTEGER_COMPARES(prefix, "u32", U32, "u", compare_words), CONSTANTS(prefix, "u32", "u", compare_words),        \
        INTEGER_COMPARES(prefix, "i16", I16, "w", compare_words),                                                      \
        INTEGER_COMPARES(prefix, "u16", U16, "w", compare_words),                                                      \
        INTEGER_COMPARES(prefix, "i64", I64, "q", compare_wide), CONSTANTS(prefix, "i64", "q", compare_wide),          \
        INTEGER_COMPARES(prefix, "u64", U64, "q", compare_wide), CONSTANTS(prefix, "u64", "q", compare_wide),          \
        FLOAT_COMPARES(prefix, "f32", F32, "f", compare_words),                                                        \
        FLOAT_COMPARES(prefix, "f16", F16, "h", compare_words), FLOAT_COMPARES(prefix, "f64", F64, "d", compare_wide), \
        {prefix "class_f32", "m:fu", bind_compare, nullptr, class_f32},                                                \
        {prefix "class_f16", "m:hu", bind_compare, nullptr, class_f16}, {                                              \
        prefix "class_f64", "m:du", bind_compare, nullptr, class_f64                                                   \
    }

const Operation kOperations[] = {ALL_COMPARES("v_cmp_"), ALL_COMPARES("v_cmpx_")};

}  // namespace

std::span<const Operation> compare_operations() { return kOperations; }

}  // namespace onebit::emulator
