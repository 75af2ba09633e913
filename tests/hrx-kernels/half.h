// f16 and bf16 on the host, by arithmetic in double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace onebit::hrx::kernels::test {

// A number with `digits` of mantissa (the leading one included) and exponents from `lowest`: the nearest, ties to even.
inline double round_to(double value, int digits, int lowest) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value) + 1 - digits, lowest);
    return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}

inline uint16_t to_half(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
    const double rounded = std::fabs(round_to(value, 11, -24));
    if (rounded >= 65536) return static_cast<uint16_t>(sign | 0x7c00);
    if (rounded < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(rounded, 24)));
    const int exponent = std::ilogb(rounded);
    const auto mantissa = static_cast<uint16_t>(std::ldexp(rounded, 10 - exponent)) & 0x3ff;
    return static_cast<uint16_t>(sign | (exponent + 15) << 10 | mantissa);
}

inline double from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    double value = 0;
    if (exponent == 31) {
        value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else {
        value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa | 0x400, exponent - 25);
    }
    return bits & 0x8000 ? -value : value;
}

inline double from_bfloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t to_bfloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
    const uint32_t upper = bits >> 16, rest = bits & 0xffff;
    const bool up = rest > 0x8000 || (rest == 0x8000 && upper % 2 == 1);
    return static_cast<uint16_t>(upper + (up ? 1 : 0));
}

}  // namespace onebit::hrx::kernels::test
