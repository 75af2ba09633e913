// Scalar 16-bit floating-point operations of RDNA3.5. Results fill the low half; the high half becomes 0, which
// programs must not read.
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/scalar_core.h"

namespace onebit::emulator {
namespace {

double half(u32 bits) { return static_cast<double>(as_f16(bits)); }

template <auto F>
void arithmetic(Wave& wave, const Instruction& i) {
    const double a = half(wave.scalar(i.source[0]));
    const double b = i.sources > 1 ? half(wave.scalar(i.source[1])) : 0.0;
    wave.set_scalar(i.destination, bits_of(static_cast<f16>(F(a, b))));
}
template <auto F>
void compare(Wave& wave, const Instruction& i) {
    wave.scc = F(half(wave.scalar(i.source[0])), half(wave.scalar(i.source[1])));
}
// Sources: the old destination, then the two factors.
void multiply_add(Wave& wave, const Instruction& i) {
    const double sum = half(wave.scalar(i.source[1])) * half(wave.scalar(i.source[2])) + half(wave.scalar(i.source[0]));
    wave.set_scalar(i.destination, bits_of(static_cast<f16>(sum)));
}

#define ARITHMETIC(name, signature, e)                                                               \
    {                                                                                                \
        name, signature, bind_scalar, nullptr, nullptr, nullptr, arithmetic<[](double a, double b) { \
            (void)b;                                                                                 \
            return (e);                                                                              \
        }>                                                                                           \
    }
#define COMPARE(name, e)                                                                                               \
    {                                                                                                                  \
        name, "h:hh", bind_scalar, nullptr, nullptr, nullptr, compare<[](double a, double b) -> bool { return (e); }>, \
            kNoDestination                                                                                             \
    }

const Operation kOperations[] = {
    ARITHMETIC("s_add_f16", "h:hh", a + b),
    ARITHMETIC("s_sub_f16", "h:hh", a - b),
    ARITHMETIC("s_mul_f16", "h:hh", a* b),
    ARITHMETIC("s_min_f16", "h:hh", ieee_min(a, b)),
    ARITHMETIC("s_max_f16", "h:hh", ieee_max(a, b)),
    ARITHMETIC("s_ceil_f16", "h:h", std::ceil(a)),
    ARITHMETIC("s_floor_f16", "h:h", std::floor(a)),
    ARITHMETIC("s_trunc_f16", "h:h", std::trunc(a)),
    ARITHMETIC("s_rndne_f16", "h:h", std::rint(a)),
    {"s_fmac_f16", "h:hh", bind_scalar, nullptr, nullptr, nullptr, multiply_add, kReadsDestination},
    COMPARE("s_cmp_lt_f16", a < b),
    COMPARE("s_cmp_eq_f16", a == b),
    COMPARE("s_cmp_le_f16", a <= b),
    COMPARE("s_cmp_gt_f16", a > b),
    COMPARE("s_cmp_lg_f16", a<b || a> b),
    COMPARE("s_cmp_ge_f16", a >= b),
    COMPARE("s_cmp_o_f16", !std::isunordered(a, b)),
    COMPARE("s_cmp_u_f16", std::isunordered(a, b)),
    COMPARE("s_cmp_nge_f16", !(a >= b)),
    COMPARE("s_cmp_nlg_f16", !(a < b || a > b)),
    COMPARE("s_cmp_ngt_f16", !(a > b)),
    COMPARE("s_cmp_nle_f16", !(a <= b)),
    COMPARE("s_cmp_neq_f16", !(a == b)),
    COMPARE("s_cmp_nlt_f16", !(a < b)),
};

}  // namespace

std::span<const Operation> scalar_f16_operations() { return kOperations; }

}  // namespace onebit::emulator
