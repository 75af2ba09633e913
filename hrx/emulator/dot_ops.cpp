// Dot products of packed values.
#include <algorithm>
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

float half_of(u32 bits, int half) { return static_cast<float>(as_f16(bits >> 16 * half)); }

// Sums in f32, highest element first, as the ISA reference writes it: products are exact.
u32 dot2_f32_f16(u32 a, u32 b, u32 c) {
    float sum = as_f32(c);
    for (int k = 0; k < 2; ++k) sum = std::fma(half_of(a, k), half_of(b, k), sum);
    return bits_of(sum);
}
u32 dot2_f32_bf16(u32 a, u32 b, u32 c) {
    float sum = as_f32(c);
    for (int k = 0; k < 2; ++k)
        sum = std::fma(bf16_to_f32(a >> 16 * k & 0xffff), bf16_to_f32(b >> 16 * k & 0xffff), sum);
    return bits_of(sum);
}
u32 dot2_f16_f16(u32 a, u32 b, u32 c) {
    float sum = static_cast<float>(as_f16(c));
    for (int k = 0; k < 2; ++k) sum = std::fma(half_of(a, k), half_of(b, k), sum);
    return bits_of(static_cast<f16>(sum));
}
u32 dot2_bf16_bf16(u32 a, u32 b, u32 c) {
    float sum = bf16_to_f32(c & 0xffff);
    for (int k = 0; k < 2; ++k)
        sum = std::fma(bf16_to_f32(a >> 16 * k & 0xffff), bf16_to_f32(b >> 16 * k & 0xffff), sum);
    return f32_to_bf16(sum);
}

// One element of Bits bits, signed or not.
template <int Bits>
i64 element(u32 word, int k, bool is_signed) {
    const u32 value = word >> Bits * k << (32 - Bits);
    return is_signed ? static_cast<i32>(value) >> (32 - Bits) : static_cast<i64>(value >> (32 - Bits));
}

template <int Bits, bool SignedA, bool SignedB, bool SignedResult, bool Clamp>
u32 dot_integer(u32 a, u32 b, u32 c) {
    i64 sum = SignedResult ? static_cast<i64>(static_cast<i32>(c)) : static_cast<i64>(c);
    for (int k = 0; k < 32 / Bits; ++k) sum += element<Bits>(a, k, SignedA) * element<Bits>(b, k, SignedB);
    if constexpr (Clamp)
        sum = SignedResult ? std::clamp<i64>(sum, INT32_MIN, INT32_MAX) : std::clamp<i64>(sum, 0, UINT32_MAX);
    return static_cast<u32>(sum);
}

template <int Bits, bool Clamp>
LaneFunction signed_dot(bool a, bool b) {
    if (a)
        return b ? word_3<dot_integer<Bits, true, true, true, Clamp>>
                 : word_3<dot_integer<Bits, true, false, true, Clamp>>;
    return b ? word_3<dot_integer<Bits, false, true, true, Clamp>>
             : word_3<dot_integer<Bits, false, false, true, Clamp>>;
}

// neg_lo says which of the first two sources are signed; value: bits an element, or 100 more for unsigned.
std::string bind_dot(BindContext& context, const Operation& operation) {
    bool is_signed[2] = {};
    AsmInstruction text = context.text;
    for (const auto& [name, value] : text.modifiers) {
        if (name == "neg_lo") {
            auto bits = parse_list(value);
            if (!bits || bits->size() < 2) return "neg_lo:" + value;
            for (int k = 0; k < 2; ++k) is_signed[k] = (*bits)[k] != 0;
        } else if (name != "clamp") {
            return "modifier " + name;
        }
    }
    const bool clamp = text.has("clamp");
    text.modifiers.clear();
    Operation row = operation;
    const bool nibbles = operation.value % 100 == 4;
    if (operation.value >= 100) {
        row.lanes = nibbles ? (clamp ? word_3<dot_integer<4, false, false, false, true>>
                                     : word_3<dot_integer<4, false, false, false, false>>)
                            : (clamp ? word_3<dot_integer<8, false, false, false, true>>
                                     : word_3<dot_integer<8, false, false, false, false>>);
    } else if (nibbles) {
        row.lanes =
            clamp ? signed_dot<4, true>(is_signed[0], is_signed[1]) : signed_dot<4, false>(is_signed[0], is_signed[1]);
    } else {
        row.lanes =
            clamp ? signed_dot<8, true>(is_signed[0], is_signed[1]) : signed_dot<8, false>(is_signed[0], is_signed[1]);
    }
    row.value = 0;
    BindContext plain{text, context.decoded, context.program, context.out, context.details};
    return bind_vector(plain, row);
}

const Operation kOperations[] = {
    {"v_dot2_f32_f16", "f:ppf", bind_vector, word_3<dot2_f32_f16>},
    {"v_dot2acc_f32_f16", "f:ppa", bind_vector, word_3<dot2_f32_f16>},
    {"v_dot2_f32_bf16", "f:ppf", bind_vector, word_3<dot2_f32_bf16>},
    {"v_dot2_f16_f16", "h:pph", bind_vector, word_3<dot2_f16_f16>},
    {"v_dot2_bf16_bf16", "w:ppw", bind_vector, word_3<dot2_bf16_bf16>},
    {"v_dot4_i32_iu8", "u:uuu", bind_dot, nullptr, nullptr, nullptr, nullptr, 8},
    {"v_dot4_u32_u8", "u:uuu", bind_dot, nullptr, nullptr, nullptr, nullptr, 108},
    {"v_dot8_i32_iu4", "u:uuu", bind_dot, nullptr, nullptr, nullptr, nullptr, 4},
    {"v_dot8_u32_u4", "u:uuu", bind_dot, nullptr, nullptr, nullptr, nullptr, 104},
};

}  // namespace

std::span<const Operation> dot_operations() { return kOperations; }

}  // namespace onebit::emulator
