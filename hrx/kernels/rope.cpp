#include "hrx/kernels/rope.h"

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

struct Turn {
    float sine, cosine;
};

// Sine and cosine of an angle in radians. The angle is reduced to at most an eighth of a turn, for which the series are
// exact to a float.
INLINE Turn turn(float angle) {
    const float quarters = __builtin_rintf(angle * 0.636619772f);
    // pi / 2 in three parts
    float x = __builtin_fmaf(quarters, -1.57079637e+00f, angle);
    x = __builtin_fmaf(quarters, 4.37113883e-08f, x);
    x = __builtin_fmaf(quarters, 1.71512451e-15f, x);
    const float square = x * x;
    float sine = __builtin_fmaf(square, 2.75573192e-06f, -1.98412698e-04f);
    sine = __builtin_fmaf(sine, square, 8.33333333e-03f);
    sine = __builtin_fmaf(sine, square, -1.66666667e-01f);
    sine = __builtin_fmaf(sine * square, x, x);
    float cosine = __builtin_fmaf(square, 2.48015873e-05f, -1.38888889e-03f);
    cosine = __builtin_fmaf(cosine, square, 4.16666667e-02f);
    cosine = __builtin_fmaf(cosine, square, -0.5f);
    cosine = __builtin_fmaf(cosine, square, 1.0f);
    const int32_t quadrant = static_cast<int32_t>(quarters) & 3;
    const float s = quadrant & 1 ? cosine : sine, c = quadrant & 1 ? sine : cosine;
    return {quadrant & 2 ? -s : s, (quadrant + 1) & 2 ? -c : c};
}

// 2^(-base_log2 * 2 pair / rotated), the exponent with twice the digits of a float: its error grows with the position.
INLINE float frequency_of(float base_log2, uint32_t pair, uint32_t rotated) {
    const auto twice = static_cast<float>(2 * pair), count = static_cast<float>(rotated);
    const float product = base_log2 * twice, product_rest = __builtin_fmaf(base_log2, twice, -product);
    const float exponent = product / count;
    const float rest = (__builtin_fmaf(-exponent, count, product) + product_rest) / count;
    const float whole = __builtin_rintf(exponent);
    const float power = bit_cast<float>((127 - static_cast<int32_t>(__builtin_fminf(whole, 126.0f))) << 23);
    return exp2_fast(-(exponent - whole + rest)) * power;
}

INLINE float angle_of(const Rope& a, uint32_t pair, uint32_t rotated, float position) {
    const float frequency = frequency_of(a.base_log2, pair, rotated);
    float angle = position * frequency;
    if (a.use_factors != 0) angle /= a.factors[pair];
    const float scaled = angle * a.frequency_scale;
    if (a.extension == 0.0f) return scaled;
    const float width = larger(0.001f, a.correction_high - a.correction_low);
    const float along = (static_cast<float>(pair) - a.correction_low) / width;
    const float mix = (1.0f - __builtin_fminf(1.0f, larger(0.0f, along))) * a.extension;
    return scaled * (1.0f - mix) + angle * mix;
}

template <typename T, bool neox>
INLINE void rope(const Rope& a, uint32_t head_size, uint32_t rotated) {
    const uint32_t pairs = head_size / 2, i = workgroup_id_x() * rope_threads + local_id_x();
    if (i >= pairs * a.heads) return;
    const uint32_t head = i / pairs, pair = i - head * pairs, token = workgroup_id_y(), sequence = workgroup_id_z();
    GLOBAL const T* in = static_cast<GLOBAL const T*>(a.in) + uint64_t{head} * a.in_stride[0] +
                         uint64_t{token} * a.in_stride[1] + uint64_t{sequence} * a.in_stride[2];
    GLOBAL T* out = static_cast<GLOBAL T*>(a.out) + uint64_t{head} * a.out_stride[0] +
                    uint64_t{token} * a.out_stride[1] + uint64_t{sequence} * a.out_stride[2];
    if (pair >= rotated / 2) {
        const T first = in[2 * pair], second = in[2 * pair + 1];
        out[2 * pair] = first;
        out[2 * pair + 1] = second;
        return;
    }
    const uint32_t low = neox ? pair : 2 * pair, high = neox ? pair + rotated / 2 : 2 * pair + 1;
    const Turn by = turn(angle_of(a, pair, rotated, static_cast<float>(a.positions[token])));
    const float x = to_float(in[low]), y = to_float(in[high]);
    const float sine = by.sine * a.magnitude, cosine = by.cosine * a.magnitude;
    out[low] = from_float<T>(x * cosine - y * sine);
    out[high] = from_float<T>(x * sine + y * cosine);
}

}  // namespace

#define ROPE(name, T, neox)                                                           \
    LOOM_ARGUMENT(name, Rope, head_size, 2, 65536)                                    \
    LOOM_ARGUMENT(name, Rope, rotated, 2, 65536)                                      \
    LOOM_KERNEL(name, Rope, rope_threads) {                                           \
        rope<T, neox>(arguments, ARGUMENT(name, head_size), ARGUMENT(name, rotated)); \
    }

ROPE(rope_normal_f32, float, false)
ROPE(rope_normal_f16, float16, false)
ROPE(rope_neox_f32, float, true)
ROPE(rope_neox_f16, float16, true)
