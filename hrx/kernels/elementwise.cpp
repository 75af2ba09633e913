#include "hrx/kernels/elementwise.h"

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

struct AddOp {
    INLINE float apply(float a, float b) { return a + b; }
};
struct SubtractOp {
    INLINE float apply(float a, float b) { return a - b; }
};
struct MultiplyOp {
    INLINE float apply(float a, float b) { return a * b; }
};
struct DivideOp {
    INLINE float apply(float a, float b) { return a / b; }
};

template <typename Op, typename T>
INLINE void binary(const Binary& a) {
    const uint32_t i = workgroup_id_x() * elementwise_threads + local_id_x();
    if (i >= a.count) return;
    const Index4 at = unravel(i, a.ne);
    const Index4 right = {at.i0 % a.right_ne[0], at.i1 % a.right_ne[1], at.i2 % a.right_ne[2], at.i3 % a.right_ne[3]};
    const float x = to_float(static_cast<GLOBAL const T*>(a.left)[offset_of(at, a.left_stride)]);
    const float y = to_float(static_cast<GLOBAL const T*>(a.right)[offset_of(right, a.right_stride)]);
    static_cast<GLOBAL T*>(a.out)[offset_of(at, a.out_stride)] = from_float<T>(Op::apply(x, y));
}

template <typename Op, typename T>
INLINE void flat_binary(const FlatBinary& a) {
    constexpr uint32_t each = elementwise_flat_each;
    const uint32_t first = (workgroup_id_x() * elementwise_threads + local_id_x()) * each;
    if (first >= a.count) return;
    GLOBAL const T* left = static_cast<GLOBAL const T*>(a.left) + first;
    GLOBAL const T* right = static_cast<GLOBAL const T*>(a.right) + first;
    GLOBAL T* out = static_cast<GLOBAL T*>(a.out) + first;
    if (a.count - first >= each) {
        auto x = load_pack<each>(left);
        const auto y = load_pack<each>(right);
#pragma unroll
        for (uint32_t k = 0; k < each; ++k) {
            x.values[k] = from_float<T>(Op::apply(to_float(x.values[k]), to_float(y.values[k])));
        }
        store_pack(out, x);
        return;
    }
    for (uint32_t k = 0; k < a.count - first; ++k) {
        out[k] = from_float<T>(Op::apply(to_float(left[k]), to_float(right[k])));
    }
}

}  // namespace

#define BINARY(name, Op, type, T)                                                         \
    LOOM_KERNEL(name##_##type, Binary, elementwise_threads) { binary<Op, T>(arguments); } \
    LOOM_KERNEL(name##_flat_##type, FlatBinary, elementwise_threads) { flat_binary<Op, T>(arguments); }

BINARY(add, AddOp, f32, float)
BINARY(add, AddOp, f16, float16)
BINARY(sub, SubtractOp, f32, float)
BINARY(sub, SubtractOp, f16, float16)
BINARY(mul, MultiplyOp, f32, float)
BINARY(mul, MultiplyOp, f16, float16)
BINARY(div, DivideOp, f32, float)
BINARY(div, DivideOp, f16, float16)

LOOM_KERNEL(scale_f32, Scale, elementwise_threads) {
    constexpr uint32_t each = elementwise_flat_each;
    const uint32_t first = (workgroup_id_x() * elementwise_threads + local_id_x()) * each;
    if (first >= arguments.count) return;
    GLOBAL const float* in = arguments.in + first;
    GLOBAL float* out = arguments.out + first;
    if (arguments.count - first >= each) {
        auto x = load_pack<each>(in);
#pragma unroll
        for (uint32_t k = 0; k < each; ++k) x.values[k] = x.values[k] * arguments.factor + arguments.offset;
        store_pack(out, x);
        return;
    }
    for (uint32_t k = 0; k < arguments.count - first; ++k) out[k] = in[k] * arguments.factor + arguments.offset;
}
