// Product of a weight matrix and many vectors on matrix units: out[v][r] = sum over k of weights[r][k] * in[v][k].
//
// mat_mul_TYPE, mat_mul_wide_TYPE   TYPE of the weights: f16, q8_0, q4_0, q4_k, q6_k, iq3_xxs; in and out f32. Block:
// MatMul.
//                    A workgroup computes a tile of 64 vectors x 64 rows (128 x 128 the wide ones, for many vectors).
// mat_mul_f16_f16    weights and in f16, out f32; 128 vectors x 256 rows. On NVIDIA memory is read ahead while the tile
//                    before is multiplied. LDS: dynamic, mat_mul_f16_f16_lds bytes. out aligned to 8 bytes.
// Weights and vectors are rounded to f16 and summed in float: in beyond 65504 becomes infinity.
// Columns are contiguous, for quantised types a multiple of the block (32 or 256), for f16 any number.
// Planes: dimensions 2 and 3 of in; the plane (i2, i3) takes weights of (i2 * weight_ne2 / in_ne2, i3 * weight_ne3 /
// in_ne3), so that in_ne2 is a multiple of weight_ne2, and in_ne3 of weight_ne3.
// Alignment: weights and in 16 bytes. Strides of f16 weights, and of in, may be any; memory is read in packs of 16
// bytes, on NVIDIA only where strides of f16 tensors are multiples of 8 and those of floats of 4.
//
// May be fixed: columns.
// Tolerance (tests/hrx-kernels/tolerances.h) relative to the sum of |weight * in|.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct MatMul {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const void) weights;
    HRX_BINDING(const void) in;
    uint32_t columns, rows, vectors;
    uint32_t weight_ne2, weight_ne3, in_ne2, in_ne3;
    uint32_t weight_stride[3];  // of dimensions 1 to 3, in elements or blocks
    uint32_t in_stride[3];
    uint32_t out_stride[3];
};

// A kernel's tile: vectors x rows of one workgroup.
struct MatMulTile {
    uint32_t vectors, rows, threads;
};
constexpr MatMulTile mat_mul_tile = {64, 64, 128}, mat_mul_wide_tile = {128, 128, 256},
                     mat_mul_f16_f16_tile = {128, 256, 256};
// On NVIDIA three steps of 64 columns are in flight.
constexpr uint32_t mat_mul_f16_f16_lds(bool nvidia) { return (128 + 256) * 2 * (nvidia ? 3 * 64 : 64 + 8); }

// groups[0]: tiles of rows, groups[1]: of vectors, groups[2]: planes.
constexpr Launch launch(const MatMul& a, const MatMulTile& tile = mat_mul_tile) {
    return {{divide_up(a.rows, tile.rows), divide_up(a.vectors, tile.vectors), a.in_ne2 * a.in_ne3}, tile.threads};
}

}  // namespace onebit::hrx::kernels
