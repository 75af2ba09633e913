// 64-bit floating-point arithmetic.
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

template <auto F>
constexpr LaneFunction f64_1 = wide_3<9, [](u64 a, u64, u64) { return bits_of(F(as_f64(a))); }>;
template <auto F>
constexpr LaneFunction f64_2 = wide_3<11, [](u64 a, u64 b, u64) { return bits_of(F(as_f64(a), as_f64(b))); }>;
template <auto F>
constexpr LaneFunction f64_3 =
    wide_3<15, [](u64 a, u64 b, u64 c) { return bits_of(F(as_f64(a), as_f64(b), as_f64(c))); }>;

const Operation kOperations[] = {
    {"v_add_f64", "d:dd", bind_vector, f64_2<[](double a, double b) { return a + b; }>},
    {"v_mul_f64", "d:dd", bind_vector, f64_2<[](double a, double b) { return a * b; }>},
    {"v_min_f64", "d:dd", bind_vector, f64_2<ieee_min<double>>},
    {"v_max_f64", "d:dd", bind_vector, f64_2<ieee_max<double>>},
    {"v_fma_f64", "d:ddd", bind_vector, f64_3<[](double a, double b, double c) { return std::fma(a, b, c); }>},
    {"v_rcp_f64", "d:d", bind_vector, f64_1<[](double a) { return 1.0 / a; }>},
    {"v_rsq_f64", "d:d", bind_vector, f64_1<[](double a) { return 1.0 / std::sqrt(a); }>},
    {"v_sqrt_f64", "d:d", bind_vector, f64_1<[](double a) { return std::sqrt(a); }>},
    {"v_fract_f64", "d:d", bind_vector, f64_1<[](double a) { return fraction(a); }>},
    {"v_trunc_f64", "d:d", bind_vector, f64_1<[](double a) { return std::trunc(a); }>},
    {"v_ceil_f64", "d:d", bind_vector, f64_1<[](double a) { return std::ceil(a); }>},
    {"v_rndne_f64", "d:d", bind_vector, f64_1<[](double a) { return std::rint(a); }>},
    {"v_floor_f64", "d:d", bind_vector, f64_1<[](double a) { return std::floor(a); }>},
    {"v_frexp_mant_f64", "d:d", bind_vector, f64_1<frexp_mantissa<double>>},
    {"v_frexp_exp_i32_f64", "u:d", bind_vector,
     wide_3<1, [](u64 a, u64, u64) { return static_cast<u64>(frexp_exponent(as_f64(a))); }>},
    {"v_ldexp_f64", "d:du", bind_vector,
     wide_3<9,
            [](u64 a, u64 b, u64) { return bits_of(std::ldexp(as_f64(a), static_cast<i32>(static_cast<u32>(b)))); }>},
};

}  // namespace

std::span<const Operation> vector_f64_operations() { return kOperations; }

}  // namespace onebit::emulator
