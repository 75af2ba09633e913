// Rotary position embedding: pairs of elements of a head are rotated by an angle that grows with the position.
//
// rope_normal_f32, rope_normal_f16   pair p is elements 2p and 2p + 1. Block: Rope.
// rope_neox_f32, rope_neox_f16       pair p is elements p and p + rotated / 2.
// in is (head size, heads, tokens, sequences), columns contiguous; positions has one int32 a token, the same for every
// head and sequence. Elements from `rotated` on are copied. out may be in. Alignment: that of an element.
// The angle of pair p is position * base^(-2p / rotated) / factors[p], changed for context extension as in YaRN (Peng
// et al., 2023): angle * frequency_scale, mixed with the angle itself by a ramp over pairs [corrections_low, high], of
// weight extension; sines and cosines times magnitude. magnitude holds YaRN's factor for extension already.
// head_size, rotated: even. May be fixed: head_size, rotated.
// Tolerance (tests/hrx-kernels/tolerances.h) relative to the length of the pair, and growing with the angle: angles are
//           floats, as in the model's own training code.
// Source    Su et al.: RoFormer, 2021.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct Rope {
    static constexpr uint32_t bindings = 4;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) in;
    HRX_BINDING(const int32_t) positions;
    HRX_BINDING(const float) factors;  // rotated / 2 of them; not read when use_factors is 0
    uint32_t head_size, rotated, heads, tokens, sequences;
    uint32_t use_factors;
    uint32_t in_stride[3];  // of dimensions 1 to 3
    uint32_t out_stride[3];
    float base_log2;  // log2 of the base, such as 13.2877 for 10000
    float frequency_scale, extension, magnitude;
    float correction_low, correction_high;  // in pairs; read when extension is not 0
};

constexpr uint32_t rope_threads = 256;

// groups[1]: tokens, groups[2]: sequences.
constexpr Launch launch(const Rope& a) {
    return {{divide_up(uint64_t{a.head_size} / 2 * a.heads, rope_threads), a.tokens, a.sequences}, rope_threads};
}

}  // namespace onebit::hrx::kernels
