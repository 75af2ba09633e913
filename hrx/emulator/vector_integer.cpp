// Integer and bit operations on 16, 32 and 64 bits.
#include <algorithm>

#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

constexpr i32 sign(u32 a) { return static_cast<i32>(a); }
constexpr i32 sign16(u32 a) { return static_cast<i16>(a); }
constexpr i32 sign24(u32 a) { return static_cast<i32>(a << 8) >> 8; }
constexpr u32 low24(u32 a) { return a & 0xffffff; }
constexpr u32 low16(u32 a) { return a & 0xffff; }

u32 bitfield_u32(u32 a, u32 b, u32 c) {
    const u32 width = c & 31;
    return (a >> (b & 31)) & ((1u << width) - 1);
}
u32 bitfield_i32(u32 a, u32 b, u32 c) {
    const u32 width = c & 31;
    if (width == 0) return 0;
    // a field that reaches past the top has the sign there
    const u32 field = static_cast<u32>(sign(a) >> (b & 31)) & ((1u << width) - 1);
    return static_cast<u32>(sign(field << (32 - width)) >> (32 - width));
}

// Bytes of {a, b}: selector values 0-3 are b, 4-7 a, 8-11 signs of 16-bit halves, 12 zero, above 0xff.
u32 permute_bytes(u32 a, u32 b, u32 c) {
    const u64 data = static_cast<u64>(a) << 32 | b;
    u32 result = 0;
    for (int k = 0; k < 4; ++k) {
        const u32 selector = c >> 8 * k & 0xff;
        u32 byte = 0xff;
        if (selector < 8)
            byte = static_cast<u32>(data >> 8 * selector) & 0xff;
        else if (selector < 12)
            byte = (data >> (16 * (selector - 8) + 15) & 1) != 0 ? 0xff : 0;
        else if (selector == 12)
            byte = 0;
        result |= byte << 8 * k;
    }
    return result;
}

u32 median(i64 a, i64 b, i64 c) { return static_cast<u32>(std::max(std::min(a, b), std::min(std::max(a, b), c))); }
u32 sad_u8(u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k) {
        const i32 difference = static_cast<i32>(a >> 8 * k & 255) - static_cast<i32>(b >> 8 * k & 255);
        c += static_cast<u32>(difference < 0 ? -difference : difference);
    }
    return c;
}
u32 reverse_bits(u32 a) {
    u32 result = 0;
    for (int k = 0; k < 32; ++k) result |= (a >> k & 1) << (31 - k);
    return result;
}
// Equal bits from the top down, not counting the sign itself; -1 when all are equal.
u32 count_sign(u32 a) {
    const u32 flipped = sign(a) < 0 ? ~a : a;
    return flipped == 0 ? 0xffffffffu : static_cast<u32>(std::countl_zero(flipped));
}
u32 saturate_i32(i64 value) { return static_cast<u32>(std::clamp<i64>(value, INT32_MIN, INT32_MAX)); }
u32 saturate_i16(i32 value) { return low16(static_cast<u32>(std::clamp(value, -32768, 32767))); }

// Result in the low half only; binders keep the high half.
template <auto F>
constexpr LaneFunction i16_2 = word_2<[](u32 a, u32 b) { return low16(static_cast<u32>(F(a, b))); }>;
template <auto F>
constexpr LaneFunction i16_3 = word_3<[](u32 a, u32 b, u32 c) { return low16(static_cast<u32>(F(a, b, c))); }>;

#define F1(e) word_1<[](u32 a) -> u32 { return static_cast<u32>(e); }>
#define F2(e) word_2<[](u32 a, u32 b) -> u32 { return static_cast<u32>(e); }>
#define F3(e) word_3<[](u32 a, u32 b, u32 c) -> u32 { return static_cast<u32>(e); }>
#define H2(e) i16_2<[](u32 a, u32 b) { return (e); }>
#define H3(e) i16_3<[](u32 a, u32 b, u32 c) { return (e); }>

std::string bind_move(BindContext& context, const Operation& operation) {
    if (auto problem = bind_vector(context, operation); !problem.empty()) return problem;
    context.details.copies = !context.text.dpp && context.out.source[0].plain;
    return {};
}

std::string bind_left_shift(BindContext& context, const Operation& operation) {
    if (auto problem = bind_vector(context, operation); !problem.empty()) return problem;
    propagate_undefined(context);
    return {};
}

// clamp turns these into saturating operations.
std::string bind_saturating(BindContext& context, const Operation& operation) {
    if (!context.text.has("clamp")) return bind_vector(context, operation);
    AsmInstruction text = context.text;
    std::erase_if(text.modifiers, [](const auto& modifier) { return modifier.first == "clamp"; });
    const Operation* saturating = find_operation(std::string(operation.mnemonic) + " clamp");
    if (saturating == nullptr) return "clamp";
    BindContext plain{text, context.decoded, context.program, context.out, context.details};
    return bind_vector(plain, *saturating);
}

void execute_swap(Wave& wave, const Instruction& i) {
    alignas(64) u32 first[kLanes];
    std::copy_n(wave.v[i.destination.index], kLanes, first);
    store_lanes(wave, i.destination.index, wave.v[i.destination2.index], wave.exec());
    store_lanes(wave, i.destination2.index, first, wave.exec());
}

std::string bind_swap(BindContext& context, const Operation& operation) {
    if (context.text.operands.size() != 2 || !context.text.modifiers.empty()) return "operands";
    for (int k = 0; k < 2; ++k) {
        Operand& out = k == 0 ? context.out.destination : context.out.destination2;
        if (auto problem = bind_destination(context, context.text.operands[k], 1, true, out); !problem.empty())
            return problem;
        note_read(context, out);
    }
    context.out.handler = operation.handler;
    return {};
}

const Operation kOperations[] = {
    {"v_mov_b32", "u:u", bind_move, F1(a)},
    {"v_swap_b32", "", bind_swap, nullptr, nullptr, nullptr, execute_swap},
    {"v_not_b32", "u:u", bind_vector, F1(~a)},
    {"v_bfrev_b32", "u:u", bind_vector, F1(reverse_bits(a))},
    {"v_clz_i32_u32", "u:u", bind_vector, F1(a == 0 ? -1 : std::countl_zero(a))},
    {"v_ctz_i32_b32", "u:u", bind_vector, F1(a == 0 ? -1 : std::countr_zero(a))},
    {"v_cls_i32", "u:u", bind_vector, F1(count_sign(a))},
    {"v_and_b32", "u:uu", bind_vector, F2(a& b)},
    {"v_or_b32", "u:uu", bind_vector, F2(a | b)},
    {"v_xor_b32", "u:uu", bind_vector, F2(a ^ b)},
    {"v_xnor_b32", "u:uu", bind_vector, F2(~(a ^ b))},
    {"v_add_nc_u32", "u:uu", bind_saturating, F2(a + b)},
    {"v_add_nc_u32 clamp", "u:uu", bind_vector, F2(a + b < a ? ~0u : a + b)},
    {"v_sub_nc_u32", "u:uu", bind_saturating, F2(a - b)},
    {"v_sub_nc_u32 clamp", "u:uu", bind_vector, F2(a < b ? 0 : a - b)},
    {"v_subrev_nc_u32", "u:uu", bind_saturating, F2(b - a)},
    {"v_subrev_nc_u32 clamp", "u:uu", bind_vector, F2(b < a ? 0 : b - a)},
    {"v_add_nc_i32", "u:uu", bind_saturating, F2(a + b)},
    {"v_add_nc_i32 clamp", "u:uu", bind_vector, F2(saturate_i32(i64{sign(a)} + sign(b)))},
    {"v_sub_nc_i32", "u:uu", bind_saturating, F2(a - b)},
    {"v_sub_nc_i32 clamp", "u:uu", bind_vector, F2(saturate_i32(i64{sign(a)} - sign(b)))},
    {"v_mul_lo_u32", "u:uu", bind_vector, F2(a* b)},
    {"v_mul_hi_u32", "u:uu", bind_vector, F2(static_cast<u64>(a) * b >> 32)},
    {"v_mul_hi_i32", "u:uu", bind_vector, F2(i64{sign(a)} * sign(b) >> 32)},
    {"v_mul_i32_i24", "u:uu", bind_vector, F2(static_cast<u32>(sign24(a)) * static_cast<u32>(sign24(b)))},
    {"v_mul_hi_i32_i24", "u:uu", bind_vector, F2(i64{sign24(a)} * sign24(b) >> 32)},
    {"v_mul_u32_u24", "u:uu", bind_vector, F2(low24(a) * low24(b))},
    {"v_mul_hi_u32_u24", "u:uu", bind_vector, F2(static_cast<u64>(low24(a)) * low24(b) >> 32)},
    {"v_min_i32", "u:uu", bind_vector, F2(std::min(sign(a), sign(b)))},
    {"v_max_i32", "u:uu", bind_vector, F2(std::max(sign(a), sign(b)))},
    {"v_min_u32", "u:uu", bind_vector, F2(std::min(a, b))},
    {"v_max_u32", "u:uu", bind_vector, F2(std::max(a, b))},
    {"v_lshlrev_b32", "u:uu", bind_vector, F2(b << (a & 31))},
    {"v_lshrrev_b32", "u:uu", bind_vector, F2(b >> (a & 31))},
    {"v_ashrrev_i32", "u:uu", bind_vector, F2(sign(b) >> (a & 31))},
    {"v_bfm_b32", "u:uu", bind_vector, F2(((1u << (a & 31)) - 1) << (b & 31))},
    {"v_bcnt_u32_b32", "u:uu", bind_vector, F2(std::popcount(a) + b)},
    {"v_bfe_u32", "u:uuu", bind_vector, word_3<bitfield_u32>},
    {"v_bfe_i32", "u:uuu", bind_vector, word_3<bitfield_i32>},
    {"v_bfi_b32", "u:uuu", bind_vector, F3((a & b) | (~a & c))},
    {"v_alignbit_b32", "u:uuu", bind_vector, F3((static_cast<u64>(a) << 32 | b) >> (c & 31))},
    {"v_alignbyte_b32", "u:uuu", bind_vector, F3((static_cast<u64>(a) << 32 | b) >> 8 * (c & 3))},
    {"v_perm_b32", "u:uuu", bind_vector, word_3<permute_bytes>},
    {"v_xad_u32", "u:uuu", bind_vector, F3((a ^ b) + c)},
    {"v_lshl_add_u32", "u:uuu", bind_vector, F3((a << (b & 31)) + c)},
    {"v_add_lshl_u32", "u:uuu", bind_vector, F3((a + b) << (c & 31))},
    {"v_lshl_or_b32", "u:uuu", bind_vector, F3((a << (b & 31)) | c)},
    {"v_and_or_b32", "u:uuu", bind_vector, F3((a & b) | c)},
    {"v_or3_b32", "u:uuu", bind_vector, F3(a | b | c)},
    {"v_xor3_b32", "u:uuu", bind_vector, F3(a ^ b ^ c)},
    {"v_add3_u32", "u:uuu", bind_vector, F3(a + b + c)},
    {"v_mad_u32_u24", "u:uuu", bind_vector, F3(low24(a) * low24(b) + c)},
    {"v_mad_i32_i24", "u:uuu", bind_vector, F3(static_cast<u32>(sign24(a)) * static_cast<u32>(sign24(b)) + c)},
    {"v_mad_u32_u16", "u:wwu", bind_vector, F3(low16(a) * low16(b) + c)},
    {"v_mad_i32_i16", "u:wwu", bind_vector, F3(static_cast<u32>(sign16(a) * sign16(b)) + c)},
    {"v_sad_u8", "u:uuu", bind_vector, word_3<sad_u8>},
    {"v_sad_u32", "u:uuu", bind_vector, F3((a > b ? a - b : b - a) + c)},
    {"v_min3_i32", "u:uuu", bind_vector, F3(std::min({sign(a), sign(b), sign(c)}))},
    {"v_max3_i32", "u:uuu", bind_vector, F3(std::max({sign(a), sign(b), sign(c)}))},
    {"v_med3_i32", "u:uuu", bind_vector, F3(median(sign(a), sign(b), sign(c)))},
    {"v_min3_u32", "u:uuu", bind_vector, F3(std::min({a, b, c}))},
    {"v_max3_u32", "u:uuu", bind_vector, F3(std::max({a, b, c}))},
    {"v_med3_u32", "u:uuu", bind_vector, F3(median(a, b, c))},
    {"v_maxmin_i32", "u:uuu", bind_vector, F3(std::min(std::max(sign(a), sign(b)), sign(c)))},
    {"v_minmax_i32", "u:uuu", bind_vector, F3(std::max(std::min(sign(a), sign(b)), sign(c)))},
    {"v_maxmin_u32", "u:uuu", bind_vector, F3(std::min(std::max(a, b), c))},
    {"v_minmax_u32", "u:uuu", bind_vector, F3(std::max(std::min(a, b), c))},
    {"v_lshlrev_b64", "q:uq", bind_left_shift, wide_3<10, [](u64 a, u64 b, u64) { return b << (a & 63); }>},
    {"v_lshrrev_b64", "q:uq", bind_vector, wide_3<10, [](u64 a, u64 b, u64) { return (b >> (a & 63)); }>},
    {"v_ashrrev_i64", "q:uq", bind_vector,
     wide_3<10, [](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<i64>(b) >> (a & 63)); }>},

    {"v_not_b16", "w:w", bind_vector, word_1<[](u32 a) { return low16(~a); }>},
    {"v_and_b16", "w:ww", bind_vector, H2(a& b)},
    {"v_or_b16", "w:ww", bind_vector, H2(a | b)},
    {"v_xor_b16", "w:ww", bind_vector, H2(a ^ b)},
    {"v_add_nc_u16", "w:ww", bind_saturating, H2(a + b)},
    {"v_add_nc_u16 clamp", "w:ww", bind_vector, H2(std::min(low16(a) + low16(b), 0xffffu))},
    {"v_sub_nc_u16", "w:ww", bind_saturating, H2(a - b)},
    {"v_sub_nc_u16 clamp", "w:ww", bind_vector, H2(low16(a) < low16(b) ? 0u : a - b)},
    {"v_add_nc_i16", "w:ww", bind_saturating, H2(a + b)},
    {"v_add_nc_i16 clamp", "w:ww", bind_vector, H2(saturate_i16(sign16(a) + sign16(b)))},
    {"v_sub_nc_i16", "w:ww", bind_saturating, H2(a - b)},
    {"v_sub_nc_i16 clamp", "w:ww", bind_vector, H2(saturate_i16(sign16(a) - sign16(b)))},
    {"v_mul_lo_u16", "w:ww", bind_vector, H2(low16(a) * low16(b))},
    {"v_mad_u16", "w:www", bind_vector, H3(low16(a) * low16(b) + c)},
    {"v_mad_i16", "w:www", bind_vector, H3(low16(a) * low16(b) + c)},
    {"v_lshlrev_b16", "w:ww", bind_vector, H2(b << (a & 15))},
    {"v_lshrrev_b16", "w:ww", bind_vector, H2(low16(b) >> (a & 15))},
    {"v_ashrrev_i16", "w:ww", bind_vector, H2(sign16(b) >> (a & 15))},
    {"v_min_u16", "w:ww", bind_vector, H2(std::min(low16(a), low16(b)))},
    {"v_max_u16", "w:ww", bind_vector, H2(std::max(low16(a), low16(b)))},
    {"v_min_i16", "w:ww", bind_vector, H2(std::min(sign16(a), sign16(b)))},
    {"v_max_i16", "w:ww", bind_vector, H2(std::max(sign16(a), sign16(b)))},
    {"v_min3_u16", "w:www", bind_vector, H3(std::min({low16(a), low16(b), low16(c)}))},
    {"v_max3_u16", "w:www", bind_vector, H3(std::max({low16(a), low16(b), low16(c)}))},
    {"v_med3_u16", "w:www", bind_vector, H3(median(low16(a), low16(b), low16(c)))},
    {"v_min3_i16", "w:www", bind_vector, H3(std::min({sign16(a), sign16(b), sign16(c)}))},
    {"v_max3_i16", "w:www", bind_vector, H3(std::max({sign16(a), sign16(b), sign16(c)}))},
    {"v_med3_i16", "w:www", bind_vector, H3(median(sign16(a), sign16(b), sign16(c)))},
    {"v_cndmask_b16", "w:wwm", bind_vector, H3(c != 0 ? b : a)},
};

}  // namespace

std::span<const Operation> vector_integer_operations() { return kOperations; }

}  // namespace onebit::emulator
