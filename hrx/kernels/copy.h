// Copies and casts of tensors.
//
// copy_A_B          with any strides. Block: Copy. Fewer than 2^31 elements.
// copy_flat_A_B     both contiguous. Block: FlatCopy. Both aligned to 4 elements.
// A to B: b32 b32, b16 b16, b8 b8 (bits of any type of that size, kept as they are), f32 f16, f32 bf16, f16 f32,
//         f16 bf16, bf16 f32, bf16 f16, f32 i32, i32 f32.
// Alignment  that of one element, where not said otherwise; out and in must not overlap.
// Rounding   to the nearest, ties to even; f16 overflows to infinity; NaN stays NaN. f32 to i32 rounds towards zero, is
//            kept between -2^31 and 2^31 - 128, and makes NaN 0.
// Tolerance  none: results are those of IEEE 754.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct Copy {
    static constexpr uint32_t bindings = 2;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) in;
    uint32_t in_ne[4];
    uint32_t in_stride[4];
    uint32_t out_ne[4];  // as many elements as in_ne, in any shape: element i of one becomes element i of the other
    uint32_t out_stride[4];
    uint32_t count;  // of elements
};

struct FlatCopy {
    static constexpr uint32_t bindings = 2;
    HRX_BINDING(void) out;
    HRX_BINDING(const void) in;
    uint32_t count;  // of elements
};

constexpr uint32_t copy_threads = 256, copy_flat_each = 4;

constexpr Launch launch(const Copy& a) { return {{divide_up(a.count, copy_threads), 1, 1}, copy_threads}; }
constexpr Launch launch(const FlatCopy& a) {
    return {{divide_up(a.count, copy_threads * copy_flat_each), 1, 1}, copy_threads};
}

}  // namespace onebit::hrx::kernels
