// Two 16-bit values a register (VOP3P), and the mixed-precision fused multiply-adds.
#include <algorithm>
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

double half_at(u32 bits, int half) { return static_cast<double>(as_f16(bits >> 16 * half)); }

template <auto F>
void packed_f16(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        u32 result = 0;
        for (int half = 0; half < 2; ++half)
            result |=
                bits_of(static_cast<f16>(F(half_at(a[lane], half), half_at(b[lane], half), half_at(c[lane], half))))
                << 16 * half;
        d[lane] = result;
    }
}

template <auto F>
void packed_i16(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const u32 low = F(a[lane] & 0xffff, b[lane] & 0xffff, c[lane] & 0xffff);
        const u32 high = F(a[lane] >> 16, b[lane] >> 16, c[lane] >> 16);
        d[lane] = (low & 0xffff) | high << 16;
    }
}

constexpr i32 sign16(u32 a) { return static_cast<i16>(a); }

// Float sources were widened by the operand's op_sel_hi; the product is exact in double.
u32 mix_f16(u32 a, u32 b, u32 c) { return bits_of(static_cast<f16>(std::fma(as_f32(a), as_f32(b), as_f32(c)))); }

#define PF(e)                                     \
    packed_f16<[](double a, double b, double c) { \
        (void)a, (void)b, (void)c;                \
        return (e);                               \
    }>
#define PI(e)                                   \
    packed_i16<[](u32 a, u32 b, u32 c) -> u32 { \
        (void)a, (void)b, (void)c;              \
        return static_cast<u32>(e);             \
    }>

const Operation kOperations[] = {
    {"v_pk_fma_f16", "p:ppp", bind_vector, PF(a* b + c)},
    {"v_pk_fmac_f16", "p:ppa", bind_vector, PF(a* b + c)},
    {"v_pk_add_f16", "p:pp", bind_vector, PF(a + b)},
    {"v_pk_mul_f16", "p:pp", bind_vector, PF(a* b)},
    {"v_pk_min_f16", "p:pp", bind_vector, PF(ieee_min(a, b))},
    {"v_pk_max_f16", "p:pp", bind_vector, PF(ieee_max(a, b))},
    {"v_pk_mad_i16", "P:PPP", bind_vector, PI(a* b + c)},
    {"v_pk_mad_u16", "P:PPP", bind_vector, PI(a* b + c)},
    {"v_pk_mul_lo_u16", "P:PP", bind_vector, PI(a* b)},
    {"v_pk_add_i16", "P:PP", bind_vector, PI(a + b)},
    {"v_pk_add_u16", "P:PP", bind_vector, PI(a + b)},
    {"v_pk_sub_i16", "P:PP", bind_vector, PI(a - b)},
    {"v_pk_sub_u16", "P:PP", bind_vector, PI(a - b)},
    {"v_pk_lshlrev_b16", "P:PP", bind_vector, PI(b << (a & 15))},
    {"v_pk_lshrrev_b16", "P:PP", bind_vector, PI(b >> (a & 15))},
    {"v_pk_ashrrev_i16", "P:PP", bind_vector, PI(sign16(b) >> (a & 15))},
    {"v_pk_max_i16", "P:PP", bind_vector, PI(std::max(sign16(a), sign16(b)))},
    {"v_pk_min_i16", "P:PP", bind_vector, PI(std::min(sign16(a), sign16(b)))},
    {"v_pk_max_u16", "P:PP", bind_vector, PI(std::max(a, b))},
    {"v_pk_min_u16", "P:PP", bind_vector, PI(std::min(a, b))},
    {"v_fma_mix_f32", "f:xxx", bind_vector, f32_3<[](float a, float b, float c) { return std::fma(a, b, c); }>},
    {"v_fma_mixlo_f16", "h:xxx", bind_vector, word_3<mix_f16>},
    {"v_fma_mixhi_f16", "h:xxx", bind_vector, word_3<mix_f16>, nullptr, nullptr, nullptr, 1},
};

}  // namespace

std::span<const Operation> vector_packed_operations() { return kOperations; }

}  // namespace onebit::emulator
