// Rows picked from a table, and rows put into one, by number.
//
// get_rows_TYPE        out row i0 = row indices[i0] of the table; TYPE of the table: f32, f16, bf16, q8_0, q4_0, q4_k,
//                      q6_k, iq3_xxs; out f32; indices int32. Block: GetRows.
// set_rows_TYPE        row indices[i0] of out = row i0 of in; TYPE of out: f32, f16, bf16, q8_0; in f32; indices int64.
//                      Block: SetRows. Two rows to one place: either of them, element by element.
// Both for each plane (i2, i3) of dimensions 2 and 3. Columns are contiguous, for quantised types a multiple of the
// block. An index outside of the table: get_rows gives a row of NaN, set_rows writes nothing. Alignment: that of an
// element; quants.h for blocks. May be fixed: columns. Tolerance (tests/hrx-kernels/tolerances.h) get_rows: exact for
// plain types. set_rows: exact for plain types; q8_0 is the
//           nearest of 127 steps, halves away from zero.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct GetRows {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(float) out;
    HRX_BINDING(const void) table;
    HRX_BINDING(const int32_t) indices;
    uint32_t columns, table_rows;
    uint32_t picked, ne2, ne3;
    uint32_t out_stride[3];    // of dimensions 1 to 3
    uint32_t table_stride[3];  // in elements, or blocks
    uint32_t index_stride[3];  // of dimensions 0 to 2: row, plane 2, plane 3
};

struct SetRows {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(void) out;
    HRX_BINDING(const float) in;
    HRX_BINDING(const int64_t) indices;
    uint32_t columns, out_rows;
    uint32_t given, ne2, ne3;
    uint32_t index_ne1, index_ne2;  // plane (i2, i3) takes indices of (i2 % index_ne1, i3 % index_ne2)
    uint32_t out_stride[3];         // in elements, or blocks
    uint32_t in_stride[3];
    uint32_t index_stride[3];
};

constexpr uint32_t rows_threads = 256;

constexpr Launch launch(const GetRows& a) { return {{a.picked, a.ne2, a.ne3}, rows_threads}; }
constexpr Launch launch(const SetRows& a) { return {{a.given, a.ne2, a.ne3}, rows_threads}; }

}  // namespace onebit::hrx::kernels
