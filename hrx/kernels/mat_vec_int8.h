// Product of a quantised weight matrix and a few vectors of 8-bit integers: for speed where arithmetic, not memory,
// would be the limit. Four products of integers are one instruction.
//
// quantise_int8_f32     vectors of floats into blocks of 32: scale = largest magnitude / 127, and integers of in /
// scale, to
//                       the nearest, halves away from zero. Block: QuantiseInt8. A wave makes a block.
// mat_vec_int8_TYPE     out[v][r] = sum over k of weights[r][k] * scale * integer; TYPE of the weights: q8_0, q4_0,
// q4_k,
//                       q6_k, iq3_xxs. Block: MatVecInt8. A wave computes `rows_each` rows, a workgroup has 2 waves.
// columns: a multiple of the weights' block (32 or 256), columns contiguous.
// A quantised vector is `columns` signed bytes, and then for each block of 32 a float, its scale, and two int16, the
// sums of its first and last 16 integers; the next begins int8_vector_bytes(columns) later. Vectors of one plane follow
// each other, then planes. Planes, alignment of weights: as in mat_vec.h. Quantised vectors: 16 bytes. in of
// quantise_int8_f32: 4 bytes. May be fixed: columns; option rows_each (which changes how many groups are launched). NaN
// a block with NaN or infinity has undefined integers. Tolerance (tests/hrx-kernels/tolerances.h) of the product:
// against the quantised vector. Quantising itself changes an element
//           by half a step.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct QuantiseInt8 {
    static constexpr uint32_t bindings = 2;
    HRX_BINDING(void) out;
    HRX_BINDING(const float) in;
    uint32_t columns, vectors, ne2, ne3;
    uint32_t in_stride[3];  // of dimensions 1 to 3
};

struct MatVecInt8 {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const void) weights;
    HRX_BINDING(const void) in;
    uint32_t columns, rows, vectors;
    uint32_t weight_ne2, weight_ne3, in_ne2, in_ne3;
    uint32_t weight_stride[3];  // of dimensions 1 to 3, in blocks
    uint32_t out_stride[3];
};

constexpr uint32_t mat_vec_int8_threads = 64, mat_vec_int8_rows_each = 2;

constexpr uint64_t int8_vector_bytes(uint32_t columns) { return (uint64_t{columns} + columns / 32 * 8 + 15) / 16 * 16; }

constexpr Launch launch(const QuantiseInt8& a) {
    return {{divide_up(a.columns, mat_vec_int8_threads), a.vectors, a.ne2 * a.ne3}, mat_vec_int8_threads};
}
constexpr Launch launch(const MatVecInt8& a, uint32_t rows_each = mat_vec_int8_rows_each) {
    return {{divide_up(a.rows, mat_vec_int8_threads / 32 * rows_each), a.vectors, a.in_ne2 * a.in_ne3},
            mat_vec_int8_threads};
}

}  // namespace onebit::hrx::kernels
