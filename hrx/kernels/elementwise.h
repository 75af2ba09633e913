// Arithmetic element by element.
//
// OP_TYPE       out = left OP right; OP: add, sub, mul, div; TYPE: f32, f16. Any strides; right is repeated where its
//               shape is smaller, as often as out's shape is a multiple of it. Block: Binary.
// OP_flat_TYPE  all three contiguous and of one shape, aligned to 4 elements. Block: FlatBinary.
// scale_f32     out = in * factor + offset, contiguous, aligned to 4 elements. Block: Scale.
// Alignment  that of one element, where not said otherwise. out may be left, right or in itself, but not overlap them
//            otherwise. Fewer than 2^31 elements.
// Rounding   f16 is computed in float and rounded once; scale rounds once or twice.
// Tolerance  exact: f32 add, sub, mul, div and all of f16. scale: 1 unit in the last place of the larger summand.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct Binary {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) left;
    HRX_BINDING(const void) right;
    uint32_t ne[4];  // of out and left
    uint32_t right_ne[4];
    uint32_t out_stride[4];
    uint32_t left_stride[4];
    uint32_t right_stride[4];
    uint32_t count;  // of elements of out
};

struct FlatBinary {
    static constexpr uint32_t bindings = 3;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) left;
    HRX_BINDING(const void) right;
    uint32_t count;
};

struct Scale {
    static constexpr uint32_t bindings = 2;
    HRX_BINDING(float) out;
    HRX_BINDING(const float) in;
    uint32_t count;
    float factor, offset;
};

constexpr uint32_t elementwise_threads = 256, elementwise_flat_each = 4;

constexpr Launch launch(const Binary& a) {
    return {{divide_up(a.count, elementwise_threads), 1, 1}, elementwise_threads};
}
constexpr Launch launch(const FlatBinary& a) {
    return {{divide_up(a.count, elementwise_threads * elementwise_flat_each), 1, 1}, elementwise_threads};
}
constexpr Launch launch(const Scale& a) {
    return {{divide_up(a.count, elementwise_threads * elementwise_flat_each), 1, 1}, elementwise_threads};
}

}  // namespace onebit::hrx::kernels
