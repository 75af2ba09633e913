#include "hrx/kernels/copy.h"

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

template <typename To, typename From>
struct Cast {
    INLINE To apply(From value) { return from_float<To>(to_float(value)); }
};
template <typename T>
struct Cast<T, T> {
    INLINE T apply(T value) { return value; }
};
template <>
struct Cast<float, int32_t> {
    INLINE float apply(int32_t value) { return static_cast<float>(value); }
};
template <>
struct Cast<int32_t, float> {
    INLINE int32_t apply(float value) {
        if (value != value) return 0;
        return static_cast<int32_t>(__builtin_fminf(__builtin_fmaxf(value, -2147483648.0f), 2147483520.0f));
    }
};

template <typename To, typename From>
INLINE void copy_strided(const Copy& a) {
    const uint32_t i = workgroup_id_x() * copy_threads + local_id_x();
    if (i >= a.count) return;
    const uint64_t from = offset_of(unravel(i, a.in_ne), a.in_stride);
    const uint64_t to = offset_of(unravel(i, a.out_ne), a.out_stride);
    static_cast<GLOBAL To*>(a.out)[to] = Cast<To, From>::apply(static_cast<GLOBAL const From*>(a.in)[from]);
}

template <typename To, typename From>
INLINE void copy_flat(const FlatCopy& a) {
    const uint32_t first = (workgroup_id_x() * copy_threads + local_id_x()) * copy_flat_each;
    if (first >= a.count) return;
    GLOBAL const From* in = static_cast<GLOBAL const From*>(a.in) + first;
    GLOBAL To* out = static_cast<GLOBAL To*>(a.out) + first;
    if (a.count - first >= copy_flat_each) {
        const auto pack = load_pack<copy_flat_each>(in);
        Pack<To, copy_flat_each> result;
#pragma unroll
        for (uint32_t k = 0; k < copy_flat_each; ++k) result.values[k] = Cast<To, From>::apply(pack.values[k]);
        store_pack(out, result);
        return;
    }
    for (uint32_t k = 0; k < a.count - first; ++k) out[k] = Cast<To, From>::apply(in[k]);
}

}  // namespace

#define COPY(from, to, From, To)                                                               \
    LOOM_KERNEL(copy_##from##_##to, Copy, copy_threads) { copy_strided<To, From>(arguments); } \
    LOOM_KERNEL(copy_flat_##from##_##to, FlatCopy, copy_threads) { copy_flat<To, From>(arguments); }

COPY(b32, b32, uint32_t, uint32_t)
COPY(b16, b16, uint16_t, uint16_t)
COPY(b8, b8, uint8_t, uint8_t)
COPY(f32, f16, float, float16)
COPY(f32, bf16, float, bfloat16)
COPY(f16, f32, float16, float)
COPY(f16, bf16, float16, bfloat16)
COPY(bf16, f32, bfloat16, float)
COPY(bf16, f16, bfloat16, float16)
COPY(f32, i32, float, int32_t)
COPY(i32, f32, int32_t, float)
