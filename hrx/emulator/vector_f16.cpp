// 16-bit floating-point arithmetic, scalar a lane. Results are rounded once: float holds sums and products of two f16
// closely enough, and double a fused multiply-add.
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

template <auto F>
void f16_1(u32* d, const u32* a, const u32*, const u32*) {
    for (int lane = 0; lane < kLanes; ++lane)
        d[lane] = bits_of(static_cast<f16>(F(static_cast<float>(as_f16(a[lane])))));
}
template <auto F>
void f16_2(u32* d, const u32* a, const u32* b, const u32*) {
    for (int lane = 0; lane < kLanes; ++lane)
        d[lane] =
            bits_of(static_cast<f16>(F(static_cast<float>(as_f16(a[lane])), static_cast<float>(as_f16(b[lane])))));
}
template <auto F>
void f16_3(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane)
        d[lane] = bits_of(static_cast<f16>(F(static_cast<double>(as_f16(a[lane])), static_cast<double>(as_f16(b[lane])),
                                             static_cast<double>(as_f16(c[lane])))));
}

// Products of two f16 are exact in double, and the sum is rounded to f16 once for all but rare ties.
constexpr auto kFma = [](double a, double b, double c) { return a * b + c; };

const Operation kOperations[] = {
    {"v_add_f16", "h:hh", bind_vector, f16_2<[](float a, float b) { return a + b; }>},
    {"v_sub_f16", "h:hh", bind_vector, f16_2<[](float a, float b) { return a - b; }>},
    {"v_subrev_f16", "h:hh", bind_vector, f16_2<[](float a, float b) { return b - a; }>},
    {"v_mul_f16", "h:hh", bind_vector, f16_2<[](float a, float b) { return a * b; }>},
    {"v_min_f16", "h:hh", bind_vector, f16_2<ieee_min<float>>},
    {"v_max_f16", "h:hh", bind_vector, f16_2<ieee_max<float>>},
    {"v_fma_f16", "h:hhh", bind_vector, f16_3<kFma>},
    {"v_fmac_f16", "h:hha", bind_vector, f16_3<kFma>},
    {"v_fmamk_f16", "h:hhh", bind_vector, f16_3<kFma>},
    {"v_fmaak_f16", "h:hhh", bind_vector, f16_3<kFma>},
    {"v_min3_f16", "h:hhh", bind_vector,
     f16_3<[](double a, double b, double c) { return ieee_min(ieee_min(a, b), c); }>},
    {"v_max3_f16", "h:hhh", bind_vector,
     f16_3<[](double a, double b, double c) { return ieee_max(ieee_max(a, b), c); }>},
    {"v_med3_f16", "h:hhh", bind_vector, f16_3<ieee_med3<double>>},
    {"v_minmax_f16", "h:hhh", bind_vector,
     f16_3<[](double a, double b, double c) { return ieee_max(ieee_min(a, b), c); }>},
    {"v_maxmin_f16", "h:hhh", bind_vector,
     f16_3<[](double a, double b, double c) { return ieee_min(ieee_max(a, b), c); }>},
    {"v_rcp_f16", "h:h", bind_vector, f16_1<[](float a) { return 1.0f / a; }>},
    {"v_rsq_f16", "h:h", bind_vector, f16_1<[](float a) { return 1.0f / std::sqrt(a); }>},
    {"v_sqrt_f16", "h:h", bind_vector, f16_1<[](float a) { return std::sqrt(a); }>},
    {"v_exp_f16", "h:h", bind_vector, f16_1<[](float a) { return std::exp2(a); }>},
    {"v_log_f16", "h:h", bind_vector, f16_1<[](float a) { return std::log2(a); }>},
    {"v_sin_f16", "h:h", bind_vector, f16_1<sine_of_turns>},
    {"v_cos_f16", "h:h", bind_vector, f16_1<cosine_of_turns>},
    // the largest f16 below 1 bounds the fraction
    {"v_fract_f16", "h:h", bind_vector, f16_1<[](float a) { return fraction(a, 0x1.ffcp-1f); }>},
    {"v_trunc_f16", "h:h", bind_vector, f16_1<[](float a) { return std::trunc(a); }>},
    {"v_ceil_f16", "h:h", bind_vector, f16_1<[](float a) { return std::ceil(a); }>},
    {"v_rndne_f16", "h:h", bind_vector, f16_1<[](float a) { return std::rint(a); }>},
    {"v_floor_f16", "h:h", bind_vector, f16_1<[](float a) { return std::floor(a); }>},
    {"v_frexp_mant_f16", "h:h", bind_vector, f16_1<frexp_mantissa<float>>},
    {"v_frexp_exp_i16_f16", "w:h", bind_vector,
     word_1<[](u32 a) { return frexp_exponent(static_cast<float>(as_f16(a))) & 0xffff; }>},
    {"v_ldexp_f16", "h:hw", bind_vector, word_2<[](u32 a, u32 b) {
         return bits_of(static_cast<f16>(std::ldexp(static_cast<double>(as_f16(a)), static_cast<i16>(b))));
     }>},
};

}  // namespace

std::span<const Operation> vector_f16_operations() { return kOperations; }

}  // namespace onebit::emulator
