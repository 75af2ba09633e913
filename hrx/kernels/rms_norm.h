// Root-mean-square norm of rows: out = in / sqrt(mean(in^2) + epsilon), then times a weight for each column.
//
// rms_norm_f32       without a weight: binding 2 is not read, any buffer will do. Block: RmsNorm.
// rms_norm_mul_f32   with a weight of `columns` floats, the same for every row.
// A workgroup of 256 computes a row; row r is (r % ne1, r / ne1 % ne2, r / ne1 / ne2) of dimensions 1 to 3. Columns are
// contiguous. Alignment: 4 bytes. out may be in.
// May be fixed: columns.
// NaN       a row with NaN becomes NaN; with an infinity, its finite elements become 0 and infinite ones NaN.
// Tolerance (tests/hrx-kernels/tolerances.h) for any number of columns: sums are made in float by 256 work-items.
// Source    Zhang, Sennrich: Root Mean Square Layer Normalization, 2019.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct RmsNorm {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const float) in;
    HRX_BINDING(const float) weight;
    uint32_t columns;
    uint32_t ne1, ne2, rows;  // rows = ne1 * ne2 * ne3
    uint32_t in_stride[3];    // of dimensions 1 to 3
    uint32_t out_stride[3];
    float epsilon;
};

constexpr uint32_t rms_norm_threads = 256;

constexpr Launch launch(const RmsNorm& a) { return {{a.rows, 1, 1}, rms_norm_threads}; }

}  // namespace onebit::hrx::kernels
