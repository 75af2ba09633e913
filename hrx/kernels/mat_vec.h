// Product of a weight matrix and a few vectors: out[v][r] = sum over k of weights[r][k] * in[v][k].
//
// mat_vec_TYPE   TYPE of the weights: f32, f16, bf16, q8_0, q4_0, q4_k, q6_k, iq3_xxs; in and out f32. Block: MatVec.
// Columns are contiguous, for quantised types a multiple of the block (32 or 256), for the others any number. A wave
// computes `rows_each` rows, a workgroup has 4 waves; each vector reads the weights again: for one or a few of them.
// Planes: dimensions 2 and 3 of in; the plane (i2, i3) takes weights of (i2 * weight_ne2 / in_ne2, i3 * weight_ne3 /
// in_ne3), so that in_ne2 is a multiple of weight_ne2, and in_ne3 of weight_ne3.
// Alignment: weights 16 bytes; in 16 bytes, and its strides multiples of 4, for quantised types. Plain types may have
// any. May be fixed: columns; option rows_each (which changes how many groups are launched). Tolerance
// (tests/hrx-kernels/tolerances.h) relative to the sum of |weight * in|, over any number of columns: products and
//           sums are floats; a vector of floats is not quantised.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct MatVec {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const void) weights;
    HRX_BINDING(const float) in;
    uint32_t columns, rows, vectors;
    uint32_t weight_ne2, weight_ne3, in_ne2, in_ne3;
    uint32_t weight_stride[3];  // of dimensions 1 to 3, in elements or blocks
    uint32_t in_stride[3];
    uint32_t out_stride[3];
};

constexpr uint32_t mat_vec_threads = 128, mat_vec_rows_each = 2;

constexpr Launch launch(const MatVec& a, uint32_t rows_each = mat_vec_rows_each) {
    return {{divide_up(a.rows, mat_vec_threads / 32 * rows_each), a.vectors, a.in_ne2 * a.in_ne3}, mat_vec_threads};
}

}  // namespace onebit::hrx::kernels
