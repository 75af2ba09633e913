// Scalar operations on 64 bits.
#include "hrx/emulator/scalar_core.h"

namespace onebit::emulator {
namespace {

u64 nonzero(u64 value, bool& scc) {
    scc = value != 0;
    return value;
}
// b: offset in bits 5:0, width in bits 22:16
u64 field_u64(u64 a, u64 b, bool& scc) {
    const u64 width = b >> 16 & 0x7f;
    const u64 mask = width >= 64 ? ~u64{0} : (u64{1} << width) - 1;
    return nonzero((a >> (b & 63)) & mask, scc);
}
u64 field_i64(u64 a, u64 b, bool& scc) {
    const u64 width = b >> 16 & 0x7f;
    if (width == 0) return nonzero(0, scc);
    const i64 shifted = static_cast<i64>(a) >> (b & 63);
    if (width >= 64) return nonzero(static_cast<u64>(shifted), scc);
    return nonzero(static_cast<u64>(static_cast<i64>(static_cast<u64>(shifted) << (64 - width)) >> (64 - width)), scc);
}
u64 reverse(u64 a) {
    u64 result = 0;
    for (int k = 0; k < 64; ++k) result |= (a >> k & 1) << (63 - k);
    return result;
}

std::string bind_wordwise(BindContext& context, const Operation& operation) {
    if (auto problem = bind_scalar(context, operation); !problem.empty()) return problem;
    propagate_undefined(context);
    return {};
}

#define W1(e)                                    \
    scalar_64<[](u64 a, u64, bool& scc) -> u64 { \
        (void)scc;                               \
        return static_cast<u64>(e);              \
    }>
#define W2(e)                                      \
    scalar_64<[](u64 a, u64 b, bool& scc) -> u64 { \
        (void)scc;                                 \
        return static_cast<u64>(e);                \
    }>
#define ROW(name, signature, handler) \
    { name, signature, bind_scalar, nullptr, nullptr, nullptr, handler }
#define WORDWISE(name, signature, handler) \
    { name, signature, bind_wordwise, nullptr, nullptr, nullptr, handler }
#define ROWV(name, signature, handler, value) \
    { name, signature, bind_scalar, nullptr, nullptr, nullptr, handler, value }

void compare_equal(Wave& wave, const Instruction& i) {
    wave.scc = wave.scalar64(i.source[0]) == wave.scalar64(i.source[1]);
}
void compare_different(Wave& wave, const Instruction& i) {
    wave.scc = wave.scalar64(i.source[0]) != wave.scalar64(i.source[1]);
}
void compare_bit0(Wave& wave, const Instruction& i) {
    wave.scc = (wave.scalar64(i.source[0]) >> (wave.scalar(i.source[1]) & 63) & 1) == 0;
}
void compare_bit1(Wave& wave, const Instruction& i) {
    wave.scc = (wave.scalar64(i.source[0]) >> (wave.scalar(i.source[1]) & 63) & 1) == 1;
}

const Operation kOperations[] = {
    ROWV("s_mov_b64", "q:q", W1(a), kCopies),
    ROWV("s_cmov_b64", "q:q", W2(scc ? b : a), kReadsDestination),
    ROW("s_brev_b64", "q:q", W1(reverse(a))),
    ROW("s_ctz_i32_b64", "u:q", W1(a == 0 ? -1 : std::countr_zero(a))),
    ROW("s_clz_i32_u64", "u:q", W1(a == 0 ? -1 : std::countl_zero(a))),
    WORDWISE("s_not_b64", "q:q", W1(nonzero(~a, scc))),
    ROW("s_bcnt0_i32_b64", "u:q", W1(nonzero(static_cast<u64>(std::popcount(~a)), scc))),
    ROW("s_bcnt1_i32_b64", "u:q", W1(nonzero(static_cast<u64>(std::popcount(a)), scc))),
    ROWV("s_bitset0_b64", "q:u", W2(a & ~(u64{1} << (b & 63))), kReadsDestination),
    ROWV("s_bitset1_b64", "q:u", W2(a | u64{1} << (b & 63)), kReadsDestination),
    WORDWISE("s_lshl_b64", "q:qu", W2(nonzero(a << (b & 63), scc))),
    ROW("s_lshr_b64", "q:qu", W2(nonzero(a >> (b & 63), scc))),
    ROW("s_ashr_i64", "q:qu", W2(nonzero(static_cast<u64>(static_cast<i64>(a) >> (b & 63)), scc))),
    WORDWISE("s_and_b64", "q:qq", W2(nonzero(a& b, scc))),
    WORDWISE("s_or_b64", "q:qq", W2(nonzero(a | b, scc))),
    WORDWISE("s_xor_b64", "q:qq", W2(nonzero(a ^ b, scc))),
    WORDWISE("s_nand_b64", "q:qq", W2(nonzero(~(a& b), scc))),
    WORDWISE("s_nor_b64", "q:qq", W2(nonzero(~(a | b), scc))),
    WORDWISE("s_xnor_b64", "q:qq", W2(nonzero(~(a ^ b), scc))),
    WORDWISE("s_and_not1_b64", "q:qq", W2(nonzero(a & ~b, scc))),
    WORDWISE("s_or_not1_b64", "q:qq", W2(nonzero(a | ~b, scc))),
    ROW("s_bfe_u64", "q:qu", scalar_64<field_u64>),
    ROW("s_bfe_i64", "q:qu", scalar_64<field_i64>),
    ROW("s_bfm_b64", "q:uu", W2(((u64{1} << (a & 63)) - 1) << (b & 63))),
    WORDWISE("s_cselect_b64", "q:qq", W2(scc ? a : b)),
    ROWV("s_cmp_eq_u64", "q:qq", compare_equal, kNoDestination),
    ROWV("s_cmp_lg_u64", "q:qq", compare_different, kNoDestination),
    ROWV("s_bitcmp0_b64", "q:qu", compare_bit0, kNoDestination),
    ROWV("s_bitcmp1_b64", "q:qu", compare_bit1, kNoDestination),
};

}  // namespace

std::span<const Operation> scalar64_operations() { return kOperations; }

}  // namespace onebit::emulator
