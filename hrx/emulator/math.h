// Floating-point rules of the ISA reference that C++'s own functions do not follow.
#pragma once

#include <cmath>
#include <limits>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

// Transcendental instructions read and write denormals as zero of the same sign, whatever the mode says.
inline float flush(float value) {
    return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

// -0 is less than +0; a NaN loses against a number. T: float or double.
template <typename T>
T ieee_max(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
}
template <typename T>
T ieee_min(T a, T b) {
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
// The middle one; with a NaN the smaller of the numbers (V_MED3: min(min(a, b), c)).
template <typename T>
T ieee_med3(T a, T b, T c) {
    if (a != a || b != b || c != c) return ieee_min(ieee_min(a, b), c);
    return ieee_max(ieee_min(a, b), ieee_min(ieee_max(a, b), c));
}

// Fraction in [0, 1): never rounds up to 1.
template <typename T>
T fraction(T x, T below_one) {
    const T result = x - std::floor(x);
    return result >= 1 ? below_one : result;
}
inline float fraction(float x) { return fraction(x, 0x1.fffffep-1f); }
inline double fraction(double x) { return fraction(x, 0x1.fffffffffffffp-1); }

template <typename T>
T frexp_mantissa(T x) {
    if (!std::isfinite(x)) return x;
    int exponent = 0;
    return std::frexp(x, &exponent);
}
template <typename T>
u32 frexp_exponent(T x) {
    if (!std::isfinite(x) || x == 0) return 0;
    int exponent = 0;
    std::frexp(x, &exponent);
    return static_cast<u32>(exponent);
}

// Float to integer: towards zero, saturating, NaN gives 0.
template <typename To, typename From>
To saturate(From value) {
    if (value != value) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
}

// x in turns; outside of +-256 the result is that of 0.
inline float sine_of_turns(float x) {
    x = flush(x);
    if (std::fabs(x) > 256.0f) return std::isfinite(x) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    return flush(static_cast<float>(std::sin(static_cast<double>(x) * 6.283185307179586)));
}
inline float cosine_of_turns(float x) {
    x = flush(x);
    if (std::fabs(x) > 256.0f) return std::isfinite(x) ? 1.0f : std::numeric_limits<float>::quiet_NaN();
    return flush(static_cast<float>(std::cos(static_cast<double>(x) * 6.283185307179586)));
}

inline f16 half_towards_zero(float value) {
    const f16 nearest = static_cast<f16>(value);
    if (value != value || std::isinf(value)) return nearest;
    if (std::fabs(static_cast<float>(nearest)) <= std::fabs(value)) return nearest;
    return as_f16(bits_of(nearest) - 1);  // one step towards zero; infinity becomes the largest number
}

inline float bf16_to_f32(u32 bits) { return as_f32(bits << 16); }
// Round to nearest even.
inline u32 f32_to_bf16(float value) {
    const u32 bits = bits_of(value);
    if (value != value) return (bits >> 16) | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

}  // namespace onebit::emulator
