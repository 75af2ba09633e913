// The three steps of an exact division: scale, fused multiply-add with scaling back, fix-up (pseudo code of
// V_DIV_SCALE, V_DIV_FMAS and V_DIV_FIXUP in the ISA reference).
#include <cmath>
#include <limits>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

template <typename T>
struct Format;
template <>
struct Format<float> {
    static constexpr int kScale = 64, kBias = 127, kFar = 96, kTiny = 23;
};
template <>
struct Format<double> {
    static constexpr int kScale = 128, kBias = 1023, kFar = 768, kTiny = 53;
};

// Biased exponent, 0 for zero and denormals.
template <typename T>
int exponent_of(T x) {
    if constexpr (sizeof(T) == 4) return static_cast<int>(bits_of(x) >> 23 & 0xff);
    return static_cast<int>(bits_of(static_cast<double>(x)) >> 52 & 0x7ff);
}
template <typename T>
bool is_denormal(T x) {
    return x != 0 && exponent_of(x) == 0;
}

// a: the value to scale (equal to b or c), b: denominator, c: numerator. flag: fmas must scale back.
template <typename T>
T div_scale(T a, T b, T c, bool& flag) {
    using F = Format<T>;
    flag = false;
    if (b == 0 || c == 0) return std::numeric_limits<T>::quiet_NaN();
    const bool is_denominator = std::bit_cast<std::conditional_t<sizeof(T) == 4, u32, u64>>(a) ==
                                std::bit_cast<std::conditional_t<sizeof(T) == 4, u32, u64>>(b);
    if (exponent_of(c) - exponent_of(b) >= F::kFar) {
        flag = true;
        return is_denominator ? std::ldexp(a, F::kScale) : a;
    }
    if (is_denormal(b)) return std::ldexp(a, F::kScale);
    const bool tiny_reciprocal = is_denormal(static_cast<T>(1) / b);
    const bool tiny_quotient = is_denormal(c / b);
    if (tiny_reciprocal && tiny_quotient) {
        flag = true;
        return is_denominator ? std::ldexp(a, F::kScale) : a;
    }
    if (tiny_reciprocal) return std::ldexp(a, -F::kScale);
    if (tiny_quotient) {
        flag = true;
        return is_denominator ? a : std::ldexp(a, F::kScale);
    }
    if (exponent_of(c) <= F::kTiny) return std::ldexp(a, F::kScale);
    return a;
}

// a: quotient so far, b: denominator, c: numerator.
template <typename T>
T div_fixup(T a, T b, T c) {
    const bool negative = std::signbit(b) != std::signbit(c);
    const T infinity = std::numeric_limits<T>::infinity();
    if (c != c) return c;
    if (b != b) return b;
    if ((b == 0 && c == 0) || (std::isinf(b) && std::isinf(c))) return std::numeric_limits<T>::quiet_NaN();
    if (b == 0 || std::isinf(c)) return negative ? -infinity : infinity;
    if (std::isinf(b) || c == 0) return negative ? -T{0} : T{0};
    // an overflow or underflow of the steps before is taken from the exponents
    const int limit = sizeof(T) == 4 ? 150 : 1075;
    if (exponent_of(c) - exponent_of(b) < -limit) return negative ? -T{0} : T{0};
    if (exponent_of(b) == 2 * Format<T>::kBias + 1) return negative ? -infinity : infinity;
    // numbers whose quotient is none: the steps before overflowed
    if (a != a) return negative ? -infinity : infinity;
    return negative ? -std::fabs(a) : std::fabs(a);
}

void div_scale_f32(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        bool flag = false;
        d[lane] = bits_of(div_scale(as_f32(a[lane]), as_f32(b[lane]), as_f32(c[lane]), flag));
        d[kLanes + lane] = flag ? 1 : 0;
    }
}
void div_scale_f64(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        bool flag = false;
        const u64 result =
            bits_of(div_scale(as_f64(wide_at(a, lane)), as_f64(wide_at(b, lane)), as_f64(wide_at(c, lane)), flag));
        d[lane] = static_cast<u32>(result);
        d[kLanes + lane] = static_cast<u32>(result >> 32);
        d[2 * kLanes + lane] = flag ? 1 : 0;
    }
}

// Undoes the scaling of V_DIV_SCALE, up for large quotients and down for small ones. The reference's text gives half of
// the power, with which divisions would be wrong.
template <typename T>
T scale_back(T sum, T quotient) {
    const int scale = Format<T>::kScale;
    return std::ldexp(sum, exponent_of(quotient) > Format<T>::kBias ? scale : -scale);
}

void execute_fmas(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[3][2 * kLanes];
    alignas(64) u32 out[2 * kLanes];
    const u32* a = fetch(wave, i.source[0], buffers[0]);
    const u32* b = fetch(wave, i.source[1], buffers[1]);
    const u32* c = fetch(wave, i.source[2], buffers[2]);
    i.run.lanes(out, a, b, c);
    const u32 scaled = wave.s[kVcc];
    for (int lane = 0; lane < kLanes; ++lane) {
        if ((scaled >> lane & 1) == 0) continue;
        if (i.destination.words == 1) {
            out[lane] = bits_of(scale_back(as_f32(out[lane]), as_f32(c[lane])));
        } else {
            const u64 result = bits_of(scale_back(as_f64(wide_at(out, lane)), as_f64(wide_at(c, lane))));
            out[lane] = static_cast<u32>(result);
            out[kLanes + lane] = static_cast<u32>(result >> 32);
        }
    }
    store_result(wave, i, i.destination, out, wave.exec());
}

std::string bind_fmas(BindContext& context, const Operation& operation) {
    note_read(context, scalar_register(kVcc));
    return bind_vector(context, operation);
}

const Operation kOperations[] = {
    {"v_div_scale_f32", "fc:fff", bind_vector, div_scale_f32},
    {"v_div_scale_f64", "dc:ddd", bind_vector, div_scale_f64},
    {"v_div_fmas_f32", "f:fff", bind_fmas, f32_3<[](float a, float b, float c) { return std::fma(a, b, c); }>, nullptr,
     nullptr, execute_fmas},
    {"v_div_fmas_f64", "d:ddd", bind_fmas,
     wide_3<15, [](u64 a, u64 b, u64 c) { return bits_of(std::fma(as_f64(a), as_f64(b), as_f64(c))); }>, nullptr,
     nullptr, execute_fmas},
    {"v_div_fixup_f32", "f:fff", bind_vector, f32_3<div_fixup<float>>},
    {"v_div_fixup_f64", "d:ddd", bind_vector,
     wide_3<15, [](u64 a, u64 b, u64 c) { return bits_of(div_fixup(as_f64(a), as_f64(b), as_f64(c))); }>},
    {"v_div_fixup_f16", "h:hhh", bind_vector, word_3<[](u32 a, u32 b, u32 c) {
         return bits_of(static_cast<f16>(
             div_fixup(static_cast<float>(as_f16(a)), static_cast<float>(as_f16(b)), static_cast<float>(as_f16(c)))));
     }>},
};

}  // namespace

std::span<const Operation> vector_divide_operations() { return kOperations; }

}  // namespace onebit::emulator
