// If this fails, floating-point instructions of emulated kernels give wrong numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

float F(u32 x) { return as_f32(x); }
u32 U(float x) { return bits_of(x); }
double H(u32 x) { return static_cast<double>(as_f16(x)); }
// A 16-bit result goes to the low half; the high half of the register stays.
u32 low(u32 old, double x) { return (old & 0xffff0000u) | bits_of(static_cast<f16>(x)); }
bool denormal(float x) { return x != 0 && std::fabs(x) < 0x1p-126f; }
// Transcendentals read and write denormals as zero.
float ftz(float x) { return denormal(x) ? std::copysign(0.0f, x) : x; }

// IEEE-754 minNum and maxNum, with -0 below +0.
double lesser(double a, double b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == 0 && b == 0) return std::signbit(a) || std::signbit(b) ? -0.0 : 0.0;
    return std::fmin(a, b);
}
double greater(double a, double b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == 0 && b == 0) return std::signbit(a) && std::signbit(b) ? -0.0 : 0.0;
    return std::fmax(a, b);
}
double middle(double a, double b, double c) {
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return lesser(lesser(a, b), c);
    return greater(lesser(a, b), lesser(greater(a, b), c));
}
float f32(double x) { return static_cast<float>(x); }

using Unary = double (*)(double);
// One source; `function` in double is rounded once, exact enough for functions that are exact in f32.
void unary_f32(const char* name, Unary function) {
    check_words(std::string(name) + " v0, v1", kFloatEdges,
                [=](u32 a, u32, u32, u32) { return U(f32(function(F(a)))); });
}

// Within one unit in the last place, as the ISA reference promises for transcendentals.
void transcendental(const char* name, float (*function)(float)) {
    for (std::size_t start = 0; start < kFloatEdges.size(); start += kLanes) {
        Machine machine;
        auto a = [&](int lane) { return kFloatEdges[(start + static_cast<std::size_t>(lane)) % kFloatEdges.size()]; };
        machine.v(1, a).ok(std::string(name) + " v0, v1");
        for (int lane = 0; lane < kLanes; ++lane) {
            const u32 wanted = U(ftz(function(ftz(F(a(lane))))));
            const u32 found = machine.get_v(0, lane);
            const i64 distance = static_cast<i64>(static_cast<i32>(wanted)) - static_cast<i32>(found);
            EXPECT_TRUE(same_f32(wanted, found) || std::abs(distance) <= 1)
                << name << std::hex << " of 0x" << a(lane) << ": 0x" << found << ", expected 0x" << wanted;
        }
    }
}

void f32_arithmetic() {
    check_words("v_add_f32 v0, v1, v2", kFloatEdges, [](u32 a, u32 b, u32, u32) { return U(F(a) + F(b)); });
    check_words("v_sub_f32 v0, v1, v2", kFloatEdges, [](u32 a, u32 b, u32, u32) { return U(F(a) - F(b)); });
    check_words("v_subrev_f32 v0, v1, v2", kFloatEdges, [](u32 a, u32 b, u32, u32) { return U(F(b) - F(a)); });
    check_words("v_mul_f32 v0, v1, v2", kFloatEdges, [](u32 a, u32 b, u32, u32) { return U(F(a) * F(b)); });
    check_words("v_mul_dx9_zero_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return F(a) == 0 || F(b) == 0 ? 0u : U(F(a) * F(b)); });
    check_words("v_min_f32 v0, v1, v2", kFloatEdges, [](u32 a, u32 b, u32, u32) { return U(f32(lesser(F(a), F(b)))); });
    check_words("v_max_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return U(f32(greater(F(a), F(b)))); });
    auto fma = [](u32 a, u32 b, u32 c, u32) { return U(std::fma(F(a), F(b), F(c))); };
    check_words("v_fma_f32 v0, v1, v2, v3", kFloatEdges, fma);
    check_words("v_fmac_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32 old) { return U(std::fma(F(a), F(b), F(old))); });
    check_words("v_fmaak_f32 v0, v1, v2, 0x40490fdb", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return U(std::fma(F(a), F(b), F(0x40490fdb))); });
    check_words("v_fmamk_f32 v0, v1, 0x40490fdb, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return U(std::fma(F(a), F(0x40490fdb), F(b))); });
    auto fma_dx9 = [](u32 a, u32 b, u32 c) {
        return F(a) == 0 || F(b) == 0 ? U(0.0f + F(c)) : U(std::fma(F(a), F(b), F(c)));
    };
    check_words("v_fma_dx9_zero_f32 v0, v1, v2, v3", kFloatEdges,
                [=](u32 a, u32 b, u32 c, u32) { return fma_dx9(a, b, c); });
    check_words("v_fmac_dx9_zero_f32 v0, v1, v2", kFloatEdges,
                [=](u32 a, u32 b, u32, u32 old) { return fma_dx9(a, b, old); });
    check_words("v_min3_f32 v0, v1, v2, v3", kFloatEdges,
                [](u32 a, u32 b, u32 c, u32) { return U(f32(lesser(lesser(F(a), F(b)), F(c)))); });
    check_words("v_max3_f32 v0, v1, v2, v3", kFloatEdges,
                [](u32 a, u32 b, u32 c, u32) { return U(f32(greater(greater(F(a), F(b)), F(c)))); });
    check_words("v_med3_f32 v0, v1, v2, v3", kFloatEdges,
                [](u32 a, u32 b, u32 c, u32) { return U(f32(middle(F(a), F(b), F(c)))); });
    check_words("v_minmax_f32 v0, v1, v2, v3", kFloatEdges,
                [](u32 a, u32 b, u32 c, u32) { return U(f32(greater(lesser(F(a), F(b)), F(c)))); });
    check_words("v_maxmin_f32 v0, v1, v2, v3", kFloatEdges,
                [](u32 a, u32 b, u32 c, u32) { return U(f32(lesser(greater(F(a), F(b)), F(c)))); });
    check_words("v_ldexp_f32 v0, v1, v2",
                {0x3f800000, 0x00800000, 0x40490fdb, 5, 0xfffffffb, 0x7f7fffff, 200, 0xffffff38},
                [](u32 a, u32 b, u32, u32) {
                    const i32 power = static_cast<i32>(b);
                    return U(std::ldexp(F(a), power > 1000 ? 1000 : power < -1000 ? -1000 : power));
                });
}

void f32_unary() {
    unary_f32("v_trunc_f32", [](double x) { return std::trunc(x); });
    unary_f32("v_ceil_f32", [](double x) { return std::ceil(x); });
    unary_f32("v_floor_f32", [](double x) { return std::floor(x); });
    unary_f32("v_rndne_f32", [](double x) { return std::nearbyint(x); });
    check_words("v_fract_f32 v0, v1", kFloatEdges, [](u32 a, u32, u32, u32) {
        const float whole = F(a) - std::floor(F(a));
        return U(whole < 1.0f || std::isnan(whole) ? whole : 0x1.fffffep-1f);
    });
    check_words("v_frexp_mant_f32 v0, v1", kFloatEdges, [](u32 a, u32, u32, u32) {
        int exponent = 0;
        return std::isfinite(F(a)) ? U(std::frexp(F(a), &exponent)) : a;
    });
    check_words("v_frexp_exp_i32_f32 v0, v1", kFloatEdges, [](u32 a, u32, u32, u32) {
        int exponent = 0;
        if (std::isfinite(F(a))) std::frexp(F(a), &exponent);
        return static_cast<u32>(exponent);
    });
    transcendental("v_rcp_f32", [](float x) { return 1.0f / x; });
    transcendental("v_rcp_iflag_f32", [](float x) { return 1.0f / x; });
    transcendental("v_rsq_f32", [](float x) { return f32(1.0 / std::sqrt(static_cast<double>(x))); });
    transcendental("v_sqrt_f32", [](float x) { return std::sqrt(x); });
    transcendental("v_exp_f32", [](float x) { return f32(std::exp2(static_cast<double>(x))); });
    transcendental("v_log_f32", [](float x) { return f32(std::log2(static_cast<double>(x))); });
    // sources are turns; beyond 256 turns the hardware gives up
    transcendental("v_sin_f32", [](float x) {
        if (std::isinf(x) || std::isnan(x)) return std::nanf("");
        return std::fabs(x) > 256 ? 0.0f : f32(std::sin(x * 6.283185307179586));
    });
    transcendental("v_cos_f32", [](float x) {
        if (std::isinf(x) || std::isnan(x)) return std::nanf("");
        return std::fabs(x) > 256 ? 1.0f : f32(std::cos(x * 6.283185307179586));
    });
}

void f16_arithmetic() {
    using Binary = double (*)(double, double);
    struct Row {
        const char* name;
        Binary function;
    };
    for (const Row& row : {Row{"v_add_f16", [](double a, double b) { return a + b; }},
                           Row{"v_sub_f16", [](double a, double b) { return a - b; }},
                           Row{"v_subrev_f16", [](double a, double b) { return b - a; }},
                           Row{"v_mul_f16", [](double a, double b) { return a * b; }}, Row{"v_min_f16", lesser},
                           Row{"v_max_f16", greater}})
        check_words(std::string(row.name) + " v0, v1, v2", kHalfEdges,
                    [&](u32 a, u32 b, u32, u32 old) { return low(old, row.function(H(a), H(b))); });
    using Ternary = double (*)(double, double, double);
    struct Row3 {
        const char* name;
        Ternary function;
    };
    for (const Row3& row :
         {Row3{"v_fma_f16", [](double a, double b, double c) { return a * b + c; }},
          Row3{"v_min3_f16", [](double a, double b, double c) { return lesser(lesser(a, b), c); }},
          Row3{"v_max3_f16", [](double a, double b, double c) { return greater(greater(a, b), c); }},
          Row3{"v_med3_f16", middle},
          Row3{"v_minmax_f16", [](double a, double b, double c) { return greater(lesser(a, b), c); }},
          Row3{"v_maxmin_f16", [](double a, double b, double c) { return lesser(greater(a, b), c); }}})
        check_words(std::string(row.name) + " v0, v1, v2, v3", kHalfEdges,
                    [&](u32 a, u32 b, u32 c, u32 old) { return low(old, row.function(H(a), H(b), H(c))); });
    check_words("v_fmac_f16 v0, v1, v2", kHalfEdges,
                [](u32 a, u32 b, u32, u32 old) { return low(old, H(a) * H(b) + H(old)); });
    check_words("v_fmaak_f16 v0, v1, v2, 0x4248", kHalfEdges,
                [](u32 a, u32 b, u32, u32 old) { return low(old, H(a) * H(b) + H(0x4248)); });
    check_words("v_fmamk_f16 v0, v1, 0x4248, v2", kHalfEdges,
                [](u32 a, u32 b, u32, u32 old) { return low(old, H(a) * H(0x4248) + H(b)); });
    for (const auto& [name, function] : std::initializer_list<std::pair<const char*, Unary>>{
             {"v_trunc_f16", [](double x) { return std::trunc(x); }},
             {"v_ceil_f16", [](double x) { return std::ceil(x); }},
             {"v_floor_f16", [](double x) { return std::floor(x); }},
             {"v_rndne_f16", [](double x) { return std::nearbyint(x); }},
             {"v_rcp_f16", [](double x) { return 1 / x; }},
             {"v_sqrt_f16", [](double x) { return std::sqrt(x); }},
             {"v_rsq_f16", [](double x) { return 1 / std::sqrt(x); }}})
        check_words(std::string(name) + " v0, v1", kHalfEdges,
                    [function = function](u32 a, u32, u32, u32 old) { return low(old, function(H(a))); });
    const std::vector<u32> tame = {0x0000, 0x3c00, 0xbc00, 0x3800, 0xb400, 0x4000, 0x4900, 0xc900};
    check_words("v_exp_f16 v0, v1", tame, [](u32 a, u32, u32, u32 old) { return low(old, std::exp2(H(a))); });
    check_words("v_log_f16 v0, v1", tame, [](u32 a, u32, u32, u32 old) { return low(old, std::log2(H(a))); });
    check_words("v_sin_f16 v0, v1", {0x0000, 0x3400, 0x3a00, 0xb400},
                [](u32 a, u32, u32, u32 old) { return low(old, std::sin(H(a) * 6.283185307179586)); });
    check_words("v_cos_f16 v0, v1", {0x0000, 0x3000, 0x3800, 0xbc00},
                [](u32 a, u32, u32, u32 old) { return low(old, std::cos(H(a) * 6.283185307179586)); });
    check_words("v_fract_f16 v0, v1", tame, [](u32 a, u32, u32, u32 old) { return low(old, H(a) - std::floor(H(a))); });
    check_words("v_frexp_mant_f16 v0, v1", tame, [](u32 a, u32, u32, u32 old) {
        int exponent = 0;
        return low(old, std::frexp(H(a), &exponent));
    });
    check_words("v_frexp_exp_i16_f16 v0, v1", tame, [](u32 a, u32, u32, u32 old) {
        int exponent = 0;
        std::frexp(H(a), &exponent);
        return (old & 0xffff0000u) | static_cast<u16>(exponent);
    });
    check_words("v_ldexp_f16 v0, v1, v2", {0x3c00, 0x0002, 0xfffe, 0x4248},
                [](u32 a, u32 b, u32, u32 old) { return low(old, std::ldexp(H(a), static_cast<i16>(b))); });
}

void f64_arithmetic() {
    auto D = [](u64 x) { return as_f64(x); };
    check_wide("v_add_f64 v[0:1], v[2:3], v[4:5]", kDoubleEdges,
               [=](u64 a, u64 b, u64) { return bits_of(D(a) + D(b)); });
    check_wide("v_mul_f64 v[0:1], v[2:3], v[4:5]", kDoubleEdges,
               [=](u64 a, u64 b, u64) { return bits_of(D(a) * D(b)); });
    check_wide("v_min_f64 v[0:1], v[2:3], v[4:5]", kDoubleEdges,
               [=](u64 a, u64 b, u64) { return bits_of(lesser(D(a), D(b))); });
    check_wide("v_max_f64 v[0:1], v[2:3], v[4:5]", kDoubleEdges,
               [=](u64 a, u64 b, u64) { return bits_of(greater(D(a), D(b))); });
    check_wide("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", kDoubleEdges,
               [=](u64 a, u64 b, u64 c) { return bits_of(std::fma(D(a), D(b), D(c))); });
    check_wide("v_rcp_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(1 / D(a)); });
    check_wide("v_rsq_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(1 / std::sqrt(D(a))); });
    check_wide("v_sqrt_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(std::sqrt(D(a))); });
    check_wide("v_trunc_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(std::trunc(D(a))); });
    check_wide("v_ceil_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(std::ceil(D(a))); });
    check_wide("v_floor_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) { return bits_of(std::floor(D(a))); });
    check_wide("v_rndne_f64 v[0:1], v[2:3]", kDoubleEdges,
               [=](u64 a, u64, u64) { return bits_of(std::nearbyint(D(a))); });
    check_wide("v_fract_f64 v[0:1], v[2:3]", {0x3ff8000000000000, 0xbff8000000000000, 0, 0x400921fb54442d18},
               [=](u64 a, u64, u64) { return bits_of(D(a) - std::floor(D(a))); });
    check_wide("v_frexp_mant_f64 v[0:1], v[2:3]", kDoubleEdges, [=](u64 a, u64, u64) {
        int exponent = 0;
        return std::isfinite(D(a)) ? bits_of(std::frexp(D(a), &exponent)) : a;
    });
    check_wide("v_ldexp_f64 v[0:1], v[2:3], v4", {0x3ff0000000000000, 0x4004000000000005, 0xc008000000000003},
               [=](u64 a, u64 b, u64) { return bits_of(std::ldexp(D(a), static_cast<i32>(static_cast<u32>(b)))); });
    for (u64 value : kDoubleEdges) {
        int exponent = 0;
        if (std::isfinite(D(value))) std::frexp(D(value), &exponent);
        Machine machine;
        machine.v64(2, [=](int) { return value; }).ok("v_frexp_exp_i32_f64 v0, v[2:3]");
        EXPECT_EQ(static_cast<i32>(machine.get_v(0, 0)), exponent) << std::hex << value;
    }
}

// n / d through the sequence that compilers emit, which must round as IEEE-754 says.
void division() {
    const std::string sequence = R"(
        v_div_scale_f32 v3, null, v2, v2, v1
        v_div_scale_f32 v4, vcc_lo, v1, v2, v1
        v_rcp_f32 v5, v3
        v_fma_f32 v6, -v3, v5, 1.0
        v_fma_f32 v5, v6, v5, v5
        v_mul_f32 v6, v4, v5
        v_fma_f32 v7, -v3, v6, v4
        v_fma_f32 v6, v7, v5, v6
        v_fma_f32 v7, -v3, v6, v4
        v_div_fmas_f32 v6, v7, v5, v6
        v_div_fixup_f32 v0, v6, v2, v1)";
    for (u32 numerator : kFloatEdges) {
        Machine machine;
        machine.v(1, numerator).v(2, [](int lane) {
            return kFloatEdges[static_cast<std::size_t>(lane) % kFloatEdges.size()];
        });
        machine.ok(sequence);
        for (int lane = 0; lane < static_cast<int>(kFloatEdges.size()); ++lane) {
            const float wanted = F(numerator) / F(kFloatEdges[static_cast<std::size_t>(lane)]);
            // results below the normal range may differ in the last place, since they are rounded twice
            if (denormal(wanted)) continue;
            EXPECT_TRUE(same_f32(machine.get_v(0, lane), U(wanted)))
                << std::hex << numerator << " / " << kFloatEdges[static_cast<std::size_t>(lane)] << ": "
                << machine.get_v(0, lane) << ", expected " << U(wanted);
        }
    }
    const std::string wide = R"(
        v_div_scale_f64 v[6:7], null, v[4:5], v[4:5], v[2:3]
        v_div_scale_f64 v[16:17], vcc_lo, v[2:3], v[4:5], v[2:3]
        v_rcp_f64 v[8:9], v[6:7]
        v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
        v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
        v_mul_f64 v[12:13], v[16:17], v[8:9]
        v_fma_f64 v[14:15], -v[6:7], v[12:13], v[16:17]
        v_div_fmas_f64 v[12:13], v[14:15], v[8:9], v[12:13]
        v_div_fixup_f64 v[0:1], v[12:13], v[4:5], v[2:3])";
    for (u64 numerator : kDoubleEdges) {
        Machine machine;
        auto denominator = [](int lane) { return kDoubleEdges[static_cast<std::size_t>(lane) % kDoubleEdges.size()]; };
        machine.v64(2, [=](int) { return numerator; }).v64(4, denominator).ok(wide);
        for (int lane = 0; lane < static_cast<int>(kDoubleEdges.size()); ++lane) {
            const double wanted = as_f64(numerator) / as_f64(denominator(lane));
            if (wanted != 0 && std::fabs(wanted) < 0x1p-1022) continue;
            EXPECT_TRUE(same_f64(machine.get_v64(0, lane), bits_of(wanted)))
                << as_f64(numerator) << " / " << as_f64(denominator(lane));
        }
    }
    Machine half;
    half.v(1, 0x3c00).v(2, 0x4200).v(3, bits_of(static_cast<f16>(1.0f / 3.0f))).v(0, 0u);
    half.ok("v_div_fixup_f16 v0, v3, v2, v1");
    EXPECT_EQ(half.get_v(0, 5) & 0xffff, bits_of(static_cast<f16>(1.0f / 3.0f)));
}

void modifiers() {
    auto check = [](const char* text, float (*expected)(float, float)) {
        check_words(text, {0x3f800000, 0xc0200000, 0x3e800000, 0xbf000000, 0x42f6e979},
                    [=](u32 a, u32 b, u32, u32) { return U(expected(F(a), F(b))); });
    };
    check("v_add_f32_e64 v0, -v1, |v2|", [](float a, float b) { return -a + std::fabs(b); });
    check("v_mul_f32_e64 v0, -|v1|, v2", [](float a, float b) { return -std::fabs(a) * b; });
    check("v_add_f32_e64 v0, v1, v2 clamp", [](float a, float b) { return std::fmin(std::fmax(a + b, 0.0f), 1.0f); });
    check("v_add_f32 v0, 0.15915494, v2", [](float, float b) { return F(0x3e22f983) + b; });
    check("v_add_f32 v0, 1, v2", [](float, float b) { return F(1) + b; });
    check("v_add_f32 v0, 0xc0490fdb, v2", [](float, float b) { return F(0xc0490fdb) + b; });
    check_words(
        "v_cndmask_b32 v0, v1, v2, vcc_lo", kIntegerEdges, [](u32, u32 b, u32, u32) { return b; },
        [](Machine& m) { m.s(kVcc, kAllLanes); });
    check_words(
        "v_cndmask_b32_e64 v0, v1, v2, s4", kIntegerEdges, [](u32 a, u32, u32, u32) { return a; },
        [](Machine& m) { m.s(4, 0); });
    // op_sel picks the high halves, and writes one
    check_words("v_add_nc_u16 v0, v1, v2 op_sel:[1,0,1]", kIntegerEdges,
                [](u32 a, u32 b, u32, u32 old) { return (old & 0xffff) | ((a >> 16) + b) << 16; });
    check_wide("v_add_f64 v[0:1], -v[2:3], 0.5", kDoubleEdges,
               [](u64 a, u64, u64) { return bits_of(-as_f64(a) + 0.5); });
    check_wide("v_add_f64 v[0:1], v[2:3], 0x40590000", kDoubleEdges,
               [](u64 a, u64, u64) { return bits_of(as_f64(a) + 100.0); });
}

}  // namespace

void vector_float_cases() {
    f32_arithmetic();
    f32_unary();
    f16_arithmetic();
    f64_arithmetic();
    division();
    modifiers();
}

TEST(VectorFloat, F32Arithmetic) { f32_arithmetic(); }
TEST(VectorFloat, F32Unary) { f32_unary(); }
TEST(VectorFloat, F16) { f16_arithmetic(); }
TEST(VectorFloat, F64) { f64_arithmetic(); }
TEST(VectorFloat, Division) { division(); }
TEST(VectorFloat, Modifiers) { modifiers(); }

// Denormals are kept, and with them hardware ignores output multipliers.
TEST(VectorFloat, OutputMultipliersAreRefused) {
    for (const char* text : {"v_add_f32_e64 v0, v1, v2 mul:2", "v_add_f32_e64 v0, v1, v2 mul:4",
                             "v_add_f16_e64 v0, v1, v2 div:2", "v_add_f64 v[0:1], v[2:3], v[4:5] div:2"}) {
        auto trap = Machine().run(text);
        ASSERT_TRUE(trap) << text;
        EXPECT_EQ(trap->kind, TrapKind::unknown_instruction) << text;
        EXPECT_NE(trap->detail.find("omod"), std::string::npos) << trap->detail;
    }
}

}  // namespace onebit::emulator
