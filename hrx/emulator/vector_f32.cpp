// 32-bit floating-point arithmetic (VOP1, VOP2, VOP3).
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

// With DX9 rules 0 times anything is +0.
float multiply_dx9(float a, float b) { return a == 0.0f || b == 0.0f ? 0.0f : a * b; }
float fma_dx9(float a, float b, float c) { return a == 0.0f || b == 0.0f ? 0.0f + c : std::fma(a, b, c); }

constexpr auto kFma = [](float a, float b, float c) { return __builtin_fmaf(a, b, c); };

const Operation kOperations[] = {
    {"v_add_f32", "f:ff", bind_vector, f32_2<[](float a, float b) { return a + b; }>},
    {"v_sub_f32", "f:ff", bind_vector, f32_2<[](float a, float b) { return a - b; }>},
    {"v_subrev_f32", "f:ff", bind_vector, f32_2<[](float a, float b) { return b - a; }>},
    {"v_mul_f32", "f:ff", bind_vector, f32_2<[](float a, float b) { return a * b; }>},
    {"v_mul_dx9_zero_f32", "f:ff", bind_vector, f32_2<multiply_dx9>},
    {"v_min_f32", "f:ff", bind_vector, f32_2<ieee_min<float>>},
    {"v_max_f32", "f:ff", bind_vector, f32_2<ieee_max<float>>},
    {"v_fma_f32", "f:fff", bind_vector, f32_3<kFma>},
    {"v_fmac_f32", "f:ffa", bind_vector, f32_3<kFma>},
    {"v_fmamk_f32", "f:fff", bind_vector, f32_3<[](float a, float k, float c) { return __builtin_fmaf(a, k, c); }>},
    {"v_fmaak_f32", "f:fff", bind_vector, f32_3<kFma>},
    {"v_fma_dx9_zero_f32", "f:fff", bind_vector, f32_3<fma_dx9>},
    {"v_fmac_dx9_zero_f32", "f:ffa", bind_vector, f32_3<fma_dx9>},
    {"v_min3_f32", "f:fff", bind_vector, f32_3<[](float a, float b, float c) { return ieee_min(ieee_min(a, b), c); }>},
    {"v_max3_f32", "f:fff", bind_vector, f32_3<[](float a, float b, float c) { return ieee_max(ieee_max(a, b), c); }>},
    {"v_med3_f32", "f:fff", bind_vector, f32_3<ieee_med3<float>>},
    {"v_minmax_f32", "f:fff", bind_vector,
     f32_3<[](float a, float b, float c) { return ieee_max(ieee_min(a, b), c); }>},
    {"v_maxmin_f32", "f:fff", bind_vector,
     f32_3<[](float a, float b, float c) { return ieee_min(ieee_max(a, b), c); }>},
    {"v_rcp_f32", "f:f", bind_vector, f32_1<[](float a) { return flush(1.0f / flush(a)); }>},
    {"v_rcp_iflag_f32", "f:f", bind_vector, f32_1<[](float a) { return flush(1.0f / flush(a)); }>},
    {"v_rsq_f32", "f:f", bind_vector,
     f32_1<[](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(flush(a)))); }>},
    {"v_sqrt_f32", "f:f", bind_vector, f32_1<[](float a) { return std::sqrt(flush(a)); }>},
    {"v_exp_f32", "f:f", bind_vector, f32_1<[](float a) { return flush(std::exp2(flush(a))); }>},
    {"v_log_f32", "f:f", bind_vector, f32_1<[](float a) { return flush(std::log2(flush(a))); }>},
    {"v_sin_f32", "f:f", bind_vector, f32_1<sine_of_turns>},
    {"v_cos_f32", "f:f", bind_vector, f32_1<cosine_of_turns>},
    {"v_fract_f32", "f:f", bind_vector, f32_1<[](float a) { return fraction(a); }>},
    {"v_trunc_f32", "f:f", bind_vector, f32_1<[](float a) { return __builtin_truncf(a); }>},
    {"v_ceil_f32", "f:f", bind_vector, f32_1<[](float a) { return __builtin_ceilf(a); }>},
    {"v_rndne_f32", "f:f", bind_vector, f32_1<[](float a) { return __builtin_rintf(a); }>},
    {"v_floor_f32", "f:f", bind_vector, f32_1<[](float a) { return __builtin_floorf(a); }>},
    {"v_frexp_mant_f32", "f:f", bind_vector, f32_1<frexp_mantissa<float>>},
    {"v_frexp_exp_i32_f32", "u:f", bind_vector, word_1<[](u32 a) { return frexp_exponent(as_f32(a)); }>},
    {"v_ldexp_f32", "f:fu", bind_vector,
     word_2<[](u32 a, u32 b) { return bits_of(std::ldexp(as_f32(a), static_cast<i32>(b))); }>},
    {"v_cndmask_b32", "u:ffm", bind_vector, word_3<[](u32 a, u32 b, u32 mask) { return mask != 0 ? b : a; }>},
};

}  // namespace

std::span<const Operation> vector_f32_operations() { return kOperations; }

}  // namespace onebit::emulator
