// Scalar operations on 32 bits (SOP1, SOP2, SOPC, SOPK) and the scalar floating-point ones of RDNA3.5.
#include <algorithm>
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/scalar_core.h"

namespace onebit::emulator {

std::string bind_scalar(BindContext& context, const Operation& operation) {
    const AsmInstruction& text = context.text;
    Instruction& out = context.out;
    if (!text.modifiers.empty()) return "modifier " + text.modifiers[0].first;
    const std::string_view signature(operation.signature);
    const auto colon = signature.find(':');
    const std::string_view letters = signature.substr(colon + 1);
    std::size_t next = 0;
    u8 count = 0;
    if ((operation.value & kNoDestination) == 0) {
        if (text.operands.empty()) return "no operands";
        if (auto problem =
                bind_destination(context, text.operands[next++], value_words(signature[0]), false, out.destination);
            !problem.empty())
            return problem;
    }
    if ((operation.value & kReadsDestination) != 0) {
        out.source[count++] = out.destination;
        note_read(context, out.destination);
    }
    for (char letter : letters) {
        if (next >= text.operands.size()) return "too few operands";
        if (text.operands[next].kind == AsmOperand::Kind::vgpr) return "vector register in a scalar operation";
        if (auto problem = bind_source(context, text.operands[next++], letter, out.source[count]); !problem.empty())
            return problem;
        finish_source(context, out.source[count++]);
    }
    if (next != text.operands.size()) return "too many operands";
    out.sources = count;
    context.details.copies = (operation.value & kCopies) != 0;
    out.handler = operation.handler;
    return {};
}

namespace {

constexpr i32 sign(u32 a) { return static_cast<i32>(a); }

u32 nonzero(u32 value, bool& scc) {
    scc = value != 0;
    return value;
}
u32 carry(u64 sum, bool& scc) {
    scc = (sum >> 32 & 1) != 0;
    return static_cast<u32>(sum);
}
u32 add_signed(u32 a, u32 b, bool& scc) {
    i32 result = 0;
    scc = __builtin_add_overflow(sign(a), sign(b), &result);
    return static_cast<u32>(result);
}
u32 subtract_signed(u32 a, u32 b, bool& scc) {
    i32 result = 0;
    scc = __builtin_sub_overflow(sign(a), sign(b), &result);
    return static_cast<u32>(result);
}
u32 chosen(bool first, u32 a, u32 b, bool& scc) {
    scc = first;
    return first ? a : b;
}
// b: offset in bits 4:0, width in bits 22:16
u32 field_u32(u32 a, u32 b, bool& scc) {
    const u32 width = std::min(b >> 16 & 0x7f, 32u);
    const u64 mask = (u64{1} << width) - 1;
    return nonzero(static_cast<u32>((a >> (b & 31)) & mask), scc);
}
u32 field_i32(u32 a, u32 b, bool& scc) {
    const u32 width = std::min(b >> 16 & 0x7f, 32u);
    if (width == 0) return nonzero(0, scc);
    const i64 field = static_cast<i64>(static_cast<u64>(i64{sign(a)} >> (b & 31)) << (64 - width)) >> (64 - width);
    return nonzero(static_cast<u32>(field), scc);
}
u32 reverse(u32 a) {
    u32 result = 0;
    for (int k = 0; k < 32; ++k) result |= (a >> k & 1) << (31 - k);
    return result;
}
u32 count_sign(u32 a) {
    const u32 flipped = sign(a) < 0 ? ~a : a;
    return flipped == 0 ? ~0u : static_cast<u32>(std::countl_zero(flipped));
}

template <auto F>
void scalar_float(Wave& wave, const Instruction& i) {
    const float a = as_f32(wave.scalar(i.source[0]));
    const float b = i.sources > 1 ? as_f32(wave.scalar(i.source[1])) : 0.0f;
    const float c = i.sources > 2 ? as_f32(wave.scalar(i.source[2])) : 0.0f;
    wave.set_scalar(i.destination, bits_of(static_cast<float>(F(a, b, c))));
}
void execute_fmac(Wave& wave, const Instruction& i) {
    // sources: the old destination, then the two factors
    wave.set_scalar(i.destination, bits_of(std::fma(as_f32(wave.scalar(i.source[1])), as_f32(wave.scalar(i.source[2])),
                                                    as_f32(wave.scalar(i.source[0])))));
}
template <auto F>
void compare_float(Wave& wave, const Instruction& i) {
    wave.scc = F(as_f32(wave.scalar(i.source[0])), as_f32(wave.scalar(i.source[1])));
}

// a: old EXEC goes to the destination, EXEC becomes F(source, old EXEC).
template <auto F>
void save_exec(Wave& wave, const Instruction& i) {
    const u32 old = wave.exec();
    const u32 source = wave.scalar(i.source[0]);
    wave.set_scalar(i.destination, old);
    wave.s[kExec] = F(source, old);
    wave.scc = wave.s[kExec] != 0;
}
// EXEC and the destination become F(source, old EXEC).
template <auto F>
void write_exec(Wave& wave, const Instruction& i) {
    const u32 result = F(wave.scalar(i.source[0]), wave.exec());
    wave.s[kExec] = result;
    wave.set_scalar(i.destination, result);
    wave.scc = result != 0;
}
std::string bind_exec(BindContext& context, const Operation& operation) {
    if (auto problem = bind_scalar(context, operation); !problem.empty()) return problem;
    note_write(context, scalar_register(kExec));
    return {};
}

#define S1(e)                                    \
    scalar_32<[](u32 a, u32, bool& scc) -> u32 { \
        (void)scc;                               \
        return static_cast<u32>(e);              \
    }>
#define S2(e)                                      \
    scalar_32<[](u32 a, u32 b, bool& scc) -> u32 { \
        (void)a, (void)b, (void)scc;               \
        return static_cast<u32>(e);                \
    }>
#define SC(e) scalar_compare<[](u32 a, u32 b) -> bool { return (e); }>
#define SF(e)                                    \
    scalar_float<[](float a, float b, float c) { \
        (void)a, (void)b, (void)c;               \
        return (e);                              \
    }>
#define CF(e) compare_float<[](float a, float b) -> bool { return (e); }>
#define EX(e) save_exec<[](u32 s, u32 exec) -> u32 { return (e); }>
#define ROW(name, signature, handler) \
    { name, signature, bind_scalar, nullptr, nullptr, nullptr, handler }
#define ROWV(name, signature, handler, value) \
    { name, signature, bind_scalar, nullptr, nullptr, nullptr, handler, value }
#define EXROW(name, handler) \
    { name, "u:u", bind_exec, nullptr, nullptr, nullptr, handler }
#define COMPARE(name, handler) ROWV(name, "u:uu", handler, kNoDestination)
#define COMPARE_FLOAT(name, handler) ROWV(name, "f:ff", handler, kNoDestination)

const Operation kOperations[] = {
    ROWV("s_mov_b32", "u:u", S1(a), kCopies),
    ROWV("s_movk_i32", "u:u", S1(static_cast<i16>(a)), 0),
    ROWV("s_cmov_b32", "u:u", S2(scc ? b : a), kReadsDestination),
    ROWV("s_cmovk_i32", "u:u", S2(scc ? static_cast<u32>(static_cast<i16>(b)) : a), kReadsDestination),
    ROW("s_brev_b32", "u:u", S1(reverse(a))),
    ROW("s_ctz_i32_b32", "u:u", S1(a == 0 ? -1 : std::countr_zero(a))),
    ROW("s_clz_i32_u32", "u:u", S1(a == 0 ? -1 : std::countl_zero(a))),
    ROW("s_cls_i32", "u:u", S1(count_sign(a))),
    ROW("s_sext_i32_i8", "u:u", S1(static_cast<i8>(a))),
    ROW("s_sext_i32_i16", "u:u", S1(static_cast<i16>(a))),
    ROW("s_abs_i32", "u:u", S1(nonzero(sign(a) < 0 ? 0 - a : a, scc))),
    ROW("s_not_b32", "u:u", S1(nonzero(~a, scc))),
    ROW("s_bcnt0_i32_b32", "u:u", S1(nonzero(static_cast<u32>(std::popcount(~a)), scc))),
    ROW("s_bcnt1_i32_b32", "u:u", S1(nonzero(static_cast<u32>(std::popcount(a)), scc))),
    ROWV("s_bitset0_b32", "u:u", S2(a & ~(1u << (b & 31))), kReadsDestination),
    ROWV("s_bitset1_b32", "u:u", S2(a | 1u << (b & 31)), kReadsDestination),

    ROW("s_add_u32", "u:uu", S2(carry(u64{a} + b, scc))),
    ROW("s_sub_u32", "u:uu", S2(carry(u64{a} - b, scc))),
    ROW("s_addc_u32", "u:uu", S2(carry(u64{a} + b + (scc ? 1 : 0), scc))),
    ROW("s_subb_u32", "u:uu", S2(carry(u64{a} - b - (scc ? 1 : 0), scc))),
    ROW("s_add_i32", "u:uu", scalar_32<add_signed>),
    ROW("s_sub_i32", "u:uu", scalar_32<subtract_signed>),
    ROWV("s_addk_i32", "u:u", S2(add_signed(a, static_cast<u32>(static_cast<i16>(b)), scc)), kReadsDestination),
    ROWV("s_mulk_i32", "u:u", S2(a* static_cast<u32>(static_cast<i16>(b))), kReadsDestination),
    ROW("s_absdiff_i32", "u:uu", S2(nonzero(sign(a - b) < 0 ? b - a : a - b, scc))),
    ROW("s_lshl_b32", "u:uu", S2(nonzero(a << (b & 31), scc))),
    ROW("s_lshr_b32", "u:uu", S2(nonzero(a >> (b & 31), scc))),
    ROW("s_ashr_i32", "u:uu", S2(nonzero(static_cast<u32>(sign(a) >> (b & 31)), scc))),
    ROW("s_lshl1_add_u32", "u:uu", S2((scc = ((u64{a} << 1) + b) >> 32 != 0, (a << 1) + b))),
    ROW("s_lshl2_add_u32", "u:uu", S2((scc = ((u64{a} << 2) + b) >> 32 != 0, (a << 2) + b))),
    ROW("s_lshl3_add_u32", "u:uu", S2((scc = ((u64{a} << 3) + b) >> 32 != 0, (a << 3) + b))),
    ROW("s_lshl4_add_u32", "u:uu", S2((scc = ((u64{a} << 4) + b) >> 32 != 0, (a << 4) + b))),
    ROW("s_min_i32", "u:uu", S2(chosen(sign(a) < sign(b), a, b, scc))),
    ROW("s_min_u32", "u:uu", S2(chosen(a < b, a, b, scc))),
    ROW("s_max_i32", "u:uu", S2(chosen(sign(a) >= sign(b), a, b, scc))),
    ROW("s_max_u32", "u:uu", S2(chosen(a >= b, a, b, scc))),
    ROW("s_and_b32", "u:uu", S2(nonzero(a& b, scc))),
    ROW("s_or_b32", "u:uu", S2(nonzero(a | b, scc))),
    ROW("s_xor_b32", "u:uu", S2(nonzero(a ^ b, scc))),
    ROW("s_nand_b32", "u:uu", S2(nonzero(~(a& b), scc))),
    ROW("s_nor_b32", "u:uu", S2(nonzero(~(a | b), scc))),
    ROW("s_xnor_b32", "u:uu", S2(nonzero(~(a ^ b), scc))),
    ROW("s_and_not1_b32", "u:uu", S2(nonzero(a & ~b, scc))),
    ROW("s_or_not1_b32", "u:uu", S2(nonzero(a | ~b, scc))),
    ROW("s_bfe_u32", "u:uu", scalar_32<field_u32>),
    ROW("s_bfe_i32", "u:uu", scalar_32<field_i32>),
    ROW("s_bfm_b32", "u:uu", S2(((1u << (a & 31)) - 1) << (b & 31))),
    ROW("s_mul_i32", "u:uu", S2(a* b)),
    ROW("s_mul_hi_u32", "u:uu", S2(u64{a} * b >> 32)),
    ROW("s_mul_hi_i32", "u:uu", S2(i64{sign(a)} * sign(b) >> 32)),
    ROW("s_cselect_b32", "u:uu", S2(scc ? a : b)),
    ROW("s_pack_ll_b32_b16", "u:uu", S2((a & 0xffff) | b << 16)),
    ROW("s_pack_lh_b32_b16", "u:uu", S2((a & 0xffff) | (b & 0xffff0000u))),
    ROW("s_pack_hh_b32_b16", "u:uu", S2(a >> 16 | (b & 0xffff0000u))),
    ROW("s_pack_hl_b32_b16", "u:uu", S2(a >> 16 | b << 16)),

    COMPARE("s_cmp_eq_i32", SC(a == b)),
    COMPARE("s_cmp_lg_i32", SC(a != b)),
    COMPARE("s_cmp_gt_i32", SC(sign(a) > sign(b))),
    COMPARE("s_cmp_ge_i32", SC(sign(a) >= sign(b))),
    COMPARE("s_cmp_lt_i32", SC(sign(a) < sign(b))),
    COMPARE("s_cmp_le_i32", SC(sign(a) <= sign(b))),
    COMPARE("s_cmp_eq_u32", SC(a == b)),
    COMPARE("s_cmp_lg_u32", SC(a != b)),
    COMPARE("s_cmp_gt_u32", SC(a > b)),
    COMPARE("s_cmp_ge_u32", SC(a >= b)),
    COMPARE("s_cmp_lt_u32", SC(a < b)),
    COMPARE("s_cmp_le_u32", SC(a <= b)),
    COMPARE("s_bitcmp0_b32", SC((a >> (b & 31) & 1) == 0)),
    COMPARE("s_bitcmp1_b32", SC((a >> (b & 31) & 1) == 1)),
    COMPARE("s_cmpk_eq_i32", SC(sign(a) == static_cast<i16>(b))),
    COMPARE("s_cmpk_lg_i32", SC(sign(a) != static_cast<i16>(b))),
    COMPARE("s_cmpk_gt_i32", SC(sign(a) > static_cast<i16>(b))),
    COMPARE("s_cmpk_ge_i32", SC(sign(a) >= static_cast<i16>(b))),
    COMPARE("s_cmpk_lt_i32", SC(sign(a) < static_cast<i16>(b))),
    COMPARE("s_cmpk_le_i32", SC(sign(a) <= static_cast<i16>(b))),
    COMPARE("s_cmpk_eq_u32", SC(a == (b & 0xffff))),
    COMPARE("s_cmpk_lg_u32", SC(a != (b & 0xffff))),
    COMPARE("s_cmpk_gt_u32", SC(a > (b & 0xffff))),
    COMPARE("s_cmpk_ge_u32", SC(a >= (b & 0xffff))),
    COMPARE("s_cmpk_lt_u32", SC(a < (b & 0xffff))),
    COMPARE("s_cmpk_le_u32", SC(a <= (b & 0xffff))),

    EXROW("s_and_saveexec_b32", EX(s& exec)),
    EXROW("s_or_saveexec_b32", EX(s | exec)),
    EXROW("s_xor_saveexec_b32", EX(s ^ exec)),
    EXROW("s_nand_saveexec_b32", EX(~(s& exec))),
    EXROW("s_nor_saveexec_b32", EX(~(s | exec))),
    EXROW("s_xnor_saveexec_b32", EX(~(s ^ exec))),
    EXROW("s_and_not0_saveexec_b32", EX(~s& exec)),
    EXROW("s_or_not0_saveexec_b32", EX(~s | exec)),
    EXROW("s_and_not1_saveexec_b32", EX(s & ~exec)),
    EXROW("s_or_not1_saveexec_b32", EX(s | ~exec)),
    EXROW("s_and_not0_wrexec_b32", (write_exec<[](u32 s, u32 exec) -> u32 { return (~s & exec); }>)),
    EXROW("s_and_not1_wrexec_b32", (write_exec<[](u32 s, u32 exec) -> u32 { return s & ~exec; }>)),

    ROW("s_add_f32", "f:ff", SF(a + b)),
    ROW("s_sub_f32", "f:ff", SF(a - b)),
    ROW("s_mul_f32", "f:ff", SF(a* b)),
    ROW("s_min_f32", "f:ff", SF(ieee_min(a, b))),
    ROW("s_max_f32", "f:ff", SF(ieee_max(a, b))),
    ROW("s_fmaak_f32", "f:fff", SF(std::fma(a, b, c))),
    ROW("s_fmamk_f32", "f:fff", SF(std::fma(a, b, c))),
    ROWV("s_fmac_f32", "f:ff", execute_fmac, kReadsDestination),
    ROW("s_ceil_f32", "f:f", SF(std::ceil(a))),
    ROW("s_floor_f32", "f:f", SF(std::floor(a))),
    ROW("s_trunc_f32", "f:f", SF(std::trunc(a))),
    ROW("s_rndne_f32", "f:f", SF(std::rint(a))),
    ROW("s_cvt_f32_i32", "f:u", S1(bits_of(static_cast<float>(sign(a))))),
    ROW("s_cvt_f32_u32", "f:u", S1(bits_of(static_cast<float>(a)))),
    ROW("s_cvt_i32_f32", "u:f", S1(saturate<i32>(as_f32(a)))),
    ROW("s_cvt_u32_f32", "u:f", S1(saturate<u32>(as_f32(a)))),
    ROW("s_cvt_f16_f32", "u:f", S1(bits_of(static_cast<f16>(as_f32(a))))),
    ROW("s_cvt_pk_rtz_f16_f32", "u:ff",
        S2(bits_of(half_towards_zero(as_f32(a))) | bits_of(half_towards_zero(as_f32(b))) << 16)),
    ROW("s_cvt_f32_f16", "f:h", S1(bits_of(static_cast<float>(as_f16(a))))),
    ROW("s_cvt_hi_f32_f16", "f:u", S1(bits_of(static_cast<float>(as_f16(a >> 16))))),
    COMPARE_FLOAT("s_cmp_lt_f32", CF(a < b)),
    COMPARE_FLOAT("s_cmp_eq_f32", CF(a == b)),
    COMPARE_FLOAT("s_cmp_le_f32", CF(a <= b)),
    COMPARE_FLOAT("s_cmp_gt_f32", CF(a > b)),
    COMPARE_FLOAT("s_cmp_lg_f32", CF(a<b || a> b)),
    COMPARE_FLOAT("s_cmp_ge_f32", CF(a >= b)),
    COMPARE_FLOAT("s_cmp_o_f32", CF(!std::isunordered(a, b))),
    COMPARE_FLOAT("s_cmp_u_f32", CF(std::isunordered(a, b))),
    COMPARE_FLOAT("s_cmp_nge_f32", CF(!(a >= b))),
    COMPARE_FLOAT("s_cmp_nlg_f32", CF(!(a < b || a > b))),
    COMPARE_FLOAT("s_cmp_ngt_f32", CF(!(a > b))),
    COMPARE_FLOAT("s_cmp_nle_f32", CF(!(a <= b))),
    COMPARE_FLOAT("s_cmp_neq_f32", CF(!(a == b))),
    COMPARE_FLOAT("s_cmp_nlt_f32", CF(!(a < b))),
};

}  // namespace

std::span<const Operation> scalar_operations() { return kOperations; }

}  // namespace onebit::emulator
