// Softmax of rows with scale, mask and position slopes: out = softmax(in * scale + slope(head) * mask).
//
// softmax_f32            without a mask: binding 2 is not read. Block: Softmax.
// softmax_mask_f32_f32   mask of float,
// softmax_mask_f16_f32   mask of f16.
// in and out are contiguous: ne[0] columns, ne[1] rows of a head, ne[2] heads, ne[3] sequences. A workgroup of 256
// computes a row. The mask has mask_ne[0] = ne[0] columns, at least ne[1] rows, and is repeated over heads and
// sequences: head i2 takes i2 % mask_ne[2]. out may be in. Alignment: that of an element. May be fixed: columns.
// slope(head) is 1 when max_bias is 0, else as in "Train Short, Test Long" (Press et al., 2022) for any number of
// heads: with n the largest power of 2 up to the number of heads, 2^(-max_bias (head + 1) / n) for head < n, then
// 2^(-max_bias / 2 (2 (head - n) + 1) / n).
// NaN       a row with NaN, with +infinity, or masked as a whole by -infinity becomes NaN.
// Tolerance (tests/hrx-kernels/tolerances.h)
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct Softmax {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const float) in;
    HRX_BINDING(const void) mask;
    uint32_t columns;
    uint32_t ne1, ne2, rows;  // rows = ne1 * ne2 * ne3
    uint32_t mask_ne2, mask_ne3;
    uint32_t mask_stride[3];  // of dimensions 1 to 3
    float scale, max_bias;
    uint32_t slope_heads;  // n above; read when max_bias is not 0
};

constexpr uint32_t softmax_threads = 256;

constexpr uint32_t slope_heads_of(uint32_t heads) {
    uint32_t n = 1;
    while (n * 2 <= heads) n *= 2;
    return n;
}

constexpr Launch launch(const Softmax& a) { return {{a.rows, 1, 1}, softmax_threads}; }

}  // namespace onebit::hrx::kernels
