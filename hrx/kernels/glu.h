// Gated linear unit with SiLU: out = gate / (1 + exp(-gate)) * up.
//
// swiglu_f32, swiglu_f16   Block: SwiGlu. Rows of `columns` contiguous elements. gate and up may be halves of one
//                          tensor: bind it twice, at two offsets. out may be gate or up.
// Alignment: that of an element. May be fixed: columns. Fewer than 2^31 elements.
// NaN       NaN in gate or up gives NaN; gate = -infinity gives NaN (as -infinity / infinity does).
// Tolerance (tests/hrx-kernels/tolerances.h) f32 relative to the result; f16 is computed in float and rounded once.
// Source    Shazeer: GLU Variants Improve Transformer, 2020.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct SwiGlu {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) gate;
    HRX_BINDING(const void) up;
    uint32_t columns, rows;
    uint32_t out_stride, gate_stride, up_stride;  // from row to row
};

constexpr uint32_t glu_threads = 256;

// The groups of dimension 0 cover all elements of all rows.
constexpr Launch launch(const SwiGlu& a) {
    return {{divide_up(uint64_t{a.columns} * a.rows, glu_threads), 1, 1}, glu_threads};
}

}  // namespace onebit::hrx::kernels
