// Types, lanes of a wave, reductions and arithmetic that the kernels of both targets share. A wave has 32 lanes.
#pragma once

#include "hrx/kernels/device.h"

namespace onebit::hrx::kernels {

using float16 = _Float16;
using half2 = float16 __attribute__((ext_vector_type(2)));
using half4 = float16 __attribute__((ext_vector_type(4)));
using half8 = float16 __attribute__((ext_vector_type(8)));
using half16 = float16 __attribute__((ext_vector_type(16)));
using float2 = float __attribute__((ext_vector_type(2)));
using float4 = float __attribute__((ext_vector_type(4)));
using float8 = float __attribute__((ext_vector_type(8)));
using uint2 = uint32_t __attribute__((ext_vector_type(2)));
using uint4 = uint32_t __attribute__((ext_vector_type(4)));

// Brain float: the upper half of a float. A scalar type of its own, which can be loaded from any address space.
enum bfloat16 : uint16_t {};

constexpr uint32_t wave_size = 32;
INLINE uint32_t lane_id() { return local_id_x() % wave_size; }
INLINE uint32_t wave_id() { return local_id_x() / wave_size; }

template <typename To, typename From>
INLINE To bit_cast(From value) {
    return __builtin_bit_cast(To, value);
}

INLINE float to_float(float value) { return value; }
INLINE float to_float(float16 value) { return static_cast<float>(value); }
INLINE float to_float(bfloat16 value) { return bit_cast<float>(uint32_t{value} << 16); }

template <typename T>
T from_float(float value);
template <>
__attribute__((always_inline)) inline float from_float<float>(float value) {
    return value;
}
// To the nearest, ties to even; beyond 65504 infinity.
template <>
__attribute__((always_inline)) inline float16 from_float<float16>(float value) {
    return static_cast<float16>(value);
}
// To the nearest, ties to even; NaN stays NaN.
template <>
__attribute__((always_inline)) inline bfloat16 from_float<bfloat16>(float value) {
    const uint32_t bits = bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bfloat16>(bits >> 16 | 0x40u);
    return static_cast<bfloat16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Memory that holds N elements, aligned to their size together, in one load or store where the device has such.
template <typename T, uint32_t N>
struct Pack {
    T values[N];
};
template <uint32_t Bytes>
struct PackBits;
template <>
struct PackBits<4> {
    using Type = uint32_t;
};
template <>
struct PackBits<8> {
    using Type = uint2;
};
template <>
struct PackBits<16> {
    using Type = uint4;
};
template <uint32_t N, typename T>
INLINE Pack<T, N> load_pack(GLOBAL const T* from) {
    return bit_cast<Pack<T, N>>(*reinterpret_cast<GLOBAL const typename PackBits<N * sizeof(T)>::Type*>(from));
}
template <uint32_t N, typename T>
INLINE void store_pack(GLOBAL T* to, const Pack<T, N>& pack) {
    using Bits = typename PackBits<N * sizeof(T)>::Type;
    *reinterpret_cast<GLOBAL Bits*>(to) = bit_cast<Bits>(pack);
}

INLINE float infinity() { return __builtin_inff(); }
INLINE float not_a_number() { return __builtin_nanf(""); }

#if defined(__AMDGCN__)

// reached by name, so that one bitcode serves every target
int32_t amdgcn_update_dpp(int32_t old, int32_t source, int32_t control, int32_t row_mask, int32_t bank_mask,
                          bool bound) __asm("llvm.amdgcn.update.dpp.i32");

// 2 to the power of x, 1 over x, 1 over the root of x: within about 1 unit in the last place.
INLINE float exp2_fast(float x) { return __builtin_amdgcn_exp2f(x); }
INLINE float reciprocal_fast(float x) { return __builtin_amdgcn_rcpf(x); }
INLINE float inverse_root(float x) { return __builtin_amdgcn_rsqf(x); }

// The value of the lane whose number differs in the bits of Mask, which is 1, 2, 4 or 8.
template <int Mask>
INLINE float exchange(float value) {
    static_assert(Mask == 1 || Mask == 2 || Mask == 4 || Mask == 8);
    const auto bits = bit_cast<int32_t>(value);
    return bit_cast<float>(amdgcn_update_dpp(bits, bits, 0x160 + Mask, 0xf, 0xf, true));
}
// The same for 16. Not with v_permlanex16, which LLVM 19 moves into divergent code.
INLINE float exchange_halves(float value) {
    const auto bits = bit_cast<int32_t>(value);
    return bit_cast<float>(__builtin_amdgcn_ds_swizzle(bits, 0x401f));
}

#else

int32_t nvvm_shuffle_xor(uint32_t members, int32_t value, int32_t mask,
                         int32_t clamp) __asm("llvm.nvvm.shfl.sync.bfly.i32");

INLINE float exp2_fast(float x) { return __nvvm_ex2_approx_f(x); }
INLINE float reciprocal_fast(float x) { return __nvvm_rcp_approx_ftz_f(x); }
INLINE float inverse_root(float x) { return __nvvm_rsqrt_approx_f(x); }

template <int Mask>
INLINE float exchange(float value) {
    return bit_cast<float>(nvvm_shuffle_xor(~0u, bit_cast<int32_t>(value), Mask, 31));
}
INLINE float exchange_halves(float value) { return exchange<16>(value); }

#endif

// Lanes of a wave see what its other lanes have written to LDS before. All lanes arrive.
INLINE void wave_barrier() {
#if defined(__AMDGCN__)
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
#else
    __nvvm_bar_warp_sync(~0u);
#endif
}

INLINE float exp_fast(float x) { return exp2_fast(x * 1.44269504f); }
// The larger; of a number and NaN the number.
INLINE float larger(float a, float b) { return __builtin_fmaxf(a, b); }

// Over the 16 lanes of a half wave, the result in each. All lanes of the wave take part.
INLINE float half_wave_sum(float value) {
    value += exchange<1>(value);
    value += exchange<2>(value);
    value += exchange<4>(value);
    return value + exchange<8>(value);
}
INLINE float half_wave_max(float value) {
    value = larger(value, exchange<1>(value));
    value = larger(value, exchange<2>(value));
    value = larger(value, exchange<4>(value));
    return larger(value, exchange<8>(value));
}
// Over the wave.
INLINE float wave_sum(float value) {
    value = half_wave_sum(value);
    return value + exchange_halves(value);
}
INLINE float wave_max(float value) {
    value = half_wave_max(value);
    return larger(value, exchange_halves(value));
}

// Over a workgroup of Threads, the result in each work-item; parts: room for one float a wave. All work-items arrive.
// The barrier at the end lets parts be used again.
template <uint32_t Threads>
INLINE float group_sum(float value, LDS float* parts) {
    value = wave_sum(value);
    if constexpr (Threads > wave_size) {
        if (lane_id() == 0) parts[wave_id()] = value;
        barrier();
        value = parts[0];
#pragma unroll
        for (uint32_t i = 1; i < Threads / wave_size; ++i) value += parts[i];
        barrier();
    }
    return value;
}
template <uint32_t Threads>
INLINE float group_max(float value, LDS float* parts) {
    value = wave_max(value);
    if constexpr (Threads > wave_size) {
        if (lane_id() == 0) parts[wave_id()] = value;
        barrier();
        value = parts[0];
#pragma unroll
        for (uint32_t i = 1; i < Threads / wave_size; ++i) value = larger(value, parts[i]);
        barrier();
    }
    return value;
}

}  // namespace onebit::hrx::kernels
