// If this fails, packed 16-bit arithmetic, mixed-precision multiply-adds or dot products are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

double H(u32 x) { return static_cast<double>(as_f16(x)); }
u32 pack(double low, double high) { return bits_of(static_cast<f16>(low)) | bits_of(static_cast<f16>(high)) << 16; }
double lesser(double a, double b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == 0 && b == 0) return std::signbit(a) || std::signbit(b) ? -0.0 : 0.0;
    return std::fmin(a, b);
}
double greater(double a, double b) { return -lesser(-a, -b); }

void packed_floats() {
    struct Row {
        const char* text;
        double (*formula)(double, double, double);
    };
    for (const Row& row : {Row{"v_pk_fma_f16 v0, v1, v2, v3", [](double a, double b, double c) { return a * b + c; }},
                           Row{"v_pk_add_f16 v0, v1, v2", [](double a, double b, double) { return a + b; }},
                           Row{"v_pk_mul_f16 v0, v1, v2", [](double a, double b, double) { return a * b; }},
                           Row{"v_pk_min_f16 v0, v1, v2", [](double a, double b, double) { return lesser(a, b); }},
                           Row{"v_pk_max_f16 v0, v1, v2", [](double a, double b, double) { return greater(a, b); }}})
        check_words(row.text, kHalfEdges, [&](u32 a, u32 b, u32 c, u32) {
            return pack(row.formula(H(a), H(b), H(c)), row.formula(H(a >> 16), H(b >> 16), H(c >> 16)));
        });
    check_words("v_pk_fmac_f16 v0, v1, v2", {0x3c003c00, 0x40003800, 0xc0004200}, [](u32 a, u32 b, u32, u32 old) {
        return pack(H(a) * H(b) + H(old), H(a >> 16) * H(b >> 16) + H(old >> 16));
    });
    const std::vector<u32> tame = {0x3c004000, 0xc2003800, 0x44003400};
    check_words("v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", tame,
                [](u32 a, u32 b, u32, u32) { return pack(H(a >> 16) + H(b), H(a) + H(b >> 16)); });
    check_words("v_pk_add_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]", tame,
                [](u32 a, u32 b, u32, u32) { return pack(-H(a) + H(b), H(a >> 16) - H(b >> 16)); });
    check_words("v_pk_mul_f16 v0, v1, v2 clamp", tame, [](u32 a, u32 b, u32, u32) {
        auto clamp = [](double x) { return std::clamp(x, 0.0, 1.0); };
        return pack(clamp(H(a) * H(b)), clamp(H(a >> 16) * H(b >> 16)));
    });
    // an inline constant has its value in the low half; op_sel_hi:0 gives it to both
    check_words("v_pk_mul_f16 v0, v1, 2.0 op_sel_hi:[1,0]", tame,
                [](u32 a, u32, u32, u32) { return pack(H(a) * 2, H(a >> 16) * 2); });
}

void packed_integers() {
    struct Row {
        const char* text;
        u32 (*formula)(u32, u32, u32);
    };
    for (const Row& row : {Row{"v_pk_mad_i16 v0, v1, v2, v3", [](u32 a, u32 b, u32 c) { return a * b + c; }},
                           Row{"v_pk_mad_u16 v0, v1, v2, v3", [](u32 a, u32 b, u32 c) { return a * b + c; }},
                           Row{"v_pk_mul_lo_u16 v0, v1, v2", [](u32 a, u32 b, u32) { return a * b; }},
                           Row{"v_pk_add_i16 v0, v1, v2", [](u32 a, u32 b, u32) { return a + b; }},
                           Row{"v_pk_add_u16 v0, v1, v2", [](u32 a, u32 b, u32) { return a + b; }},
                           Row{"v_pk_sub_i16 v0, v1, v2", [](u32 a, u32 b, u32) { return a - b; }},
                           Row{"v_pk_sub_u16 v0, v1, v2", [](u32 a, u32 b, u32) { return a - b; }},
                           Row{"v_pk_lshlrev_b16 v0, v1, v2", [](u32 a, u32 b, u32) { return b << a % 16; }},
                           Row{"v_pk_lshrrev_b16 v0, v1, v2", [](u32 a, u32 b, u32) { return b >> a % 16; }},
                           Row{"v_pk_ashrrev_i16 v0, v1, v2",
                               [](u32 a, u32 b, u32) { return static_cast<u32>(static_cast<i16>(b) >> a % 16); }},
                           Row{"v_pk_max_i16 v0, v1, v2",
                               [](u32 a, u32 b, u32) { return static_cast<i16>(a) > static_cast<i16>(b) ? a : b; }},
                           Row{"v_pk_min_i16 v0, v1, v2",
                               [](u32 a, u32 b, u32) { return static_cast<i16>(a) < static_cast<i16>(b) ? a : b; }},
                           Row{"v_pk_max_u16 v0, v1, v2", [](u32 a, u32 b, u32) { return a > b ? a : b; }},
                           Row{"v_pk_min_u16 v0, v1, v2", [](u32 a, u32 b, u32) { return a < b ? a : b; }}})
        check_words(row.text, kIntegerEdges, [&](u32 a, u32 b, u32 c, u32) {
            return (row.formula(a & 0xffff, b & 0xffff, c & 0xffff) & 0xffff) | row.formula(a >> 16, b >> 16, c >> 16)
                                                                                    << 16;
        });
}

void mixed() {
    const std::vector<u32> tame = {0x3c004000, 0x40490fdb, 0x3fc03800, 0xc0203555};
    auto F = [](u32 x) { return as_f32(x); };
    check_words("v_fma_mix_f32 v0, v1, v2, v3", tame,
                [=](u32 a, u32 b, u32 c, u32) { return bits_of(std::fma(F(a), F(b), F(c))); });
    check_words("v_fma_mix_f32 v0, v1, -v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]", tame, [=](u32 a, u32 b, u32 c, u32) {
        return bits_of(std::fma(static_cast<float>(H(a)), -static_cast<float>(H(b >> 16)), F(c)));
    });
    check_words("v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0]", tame, [=](u32 a, u32 b, u32 c, u32 old) {
        return (old & 0xffff0000u) | bits_of(static_cast<f16>(std::fma(static_cast<float>(H(a)), F(b), F(c))));
    });
    check_words("v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0]", tame, [=](u32 a, u32 b, u32 c, u32 old) {
        return (old & 0xffff) | bits_of(static_cast<f16>(std::fma(static_cast<float>(H(a)), F(b), F(c)))) << 16;
    });
}

// Element k of `bits` bits.
i64 element(u32 word, int k, int bits, bool is_signed) {
    const i64 value = word >> bits * k & ((u64{1} << bits) - 1);
    return is_signed && value >= i64{1} << (bits - 1) ? value - (i64{1} << bits) : value;
}
i64 dot(u32 a, u32 b, int bits, bool signed_a, bool signed_b) {
    i64 sum = 0;
    for (int k = 0; k < 32 / bits; ++k) sum += element(a, k, bits, signed_a) * element(b, k, bits, signed_b);
    return sum;
}

void dots() {
    for (int mask = 0; mask < 4; ++mask)
        for (int bits : {8, 4}) {
            const bool a_signed = (mask & 1) != 0;
            const bool b_signed = (mask & 2) != 0;
            const std::string name = bits == 8 ? "v_dot4_i32_iu8" : "v_dot8_i32_iu4";
            const std::string signs =
                std::string(" neg_lo:[") + (a_signed ? "1" : "0") + "," + (b_signed ? "1" : "0") + ",0]";
            check_words(name + " v0, v1, v2, v3" + signs, kIntegerEdges, [=](u32 a, u32 b, u32 c, u32) {
                return static_cast<u32>(dot(a, b, bits, a_signed, b_signed) + static_cast<i32>(c));
            });
            check_words(name + " v0, v1, v2, v3" + signs + " clamp", kIntegerEdges, [=](u32 a, u32 b, u32 c, u32) {
                const i64 sum = dot(a, b, bits, a_signed, b_signed) + static_cast<i32>(c);
                return static_cast<u32>(std::clamp<i64>(sum, INT32_MIN, INT32_MAX));
            });
        }
    check_words("v_dot4_u32_u8 v0, v1, v2, v3", kIntegerEdges,
                [](u32 a, u32 b, u32 c, u32) { return static_cast<u32>(dot(a, b, 8, false, false) + c); });
    check_words("v_dot8_u32_u4 v0, v1, v2, v3", kIntegerEdges,
                [](u32 a, u32 b, u32 c, u32) { return static_cast<u32>(dot(a, b, 4, false, false) + c); });
    const std::vector<u32> halves = {0x3c004000, 0x38003c00, 0xc2003400, 0x40004400};
    // the low product is added first
    auto sum = [](u32 a, u32 b, double c) {
        const float first = std::fma(static_cast<float>(H(a)), static_cast<float>(H(b)), static_cast<float>(c));
        return static_cast<double>(std::fma(static_cast<float>(H(a >> 16)), static_cast<float>(H(b >> 16)), first));
    };
    check_words("v_dot2_f32_f16 v0, v1, v2, 0.5", halves,
                [=](u32 a, u32 b, u32, u32) { return bits_of(static_cast<float>(sum(a, b, 0.5))); });
    check_words("v_dot2acc_f32_f16 v0, v1, v2", halves,
                [=](u32 a, u32 b, u32, u32 old) { return bits_of(static_cast<float>(sum(a, b, as_f32(old)))); });
    check_words("v_dot2_f16_f16 v0, v1, v2, v3", halves, [=](u32 a, u32 b, u32 c, u32 old) {
        return (old & 0xffff0000u) | bits_of(static_cast<f16>(sum(a, b, H(c))));
    });
    const std::vector<u32> brains = {0x3f804000, 0x3f003fc0, 0xc0003e80};
    auto brain_sum = [](u32 a, u32 b, double c) {
        auto B = [](u32 x) { return static_cast<double>(as_f32(x << 16)); };
        return c + B(a) * B(b) + B(a >> 16) * B(b >> 16);
    };
    check_words("v_dot2_f32_bf16 v0, v1, v2, 1.0", brains,
                [=](u32 a, u32 b, u32, u32) { return bits_of(static_cast<float>(brain_sum(a, b, 1.0))); });
    // sums that a bf16 holds
    Machine machine;
    machine.v(0, 0xabcd0000u)
        .v(1, 0x3f804000u)
        .v(2, 0x3f803f80u)
        .v(3, 0x00003f80u)
        .ok("v_dot2_bf16_bf16 v0, v1, v2, v3");
    EXPECT_EQ(machine.get_v(0, 0), 0xabcd0000u | bits_of(4.0f) >> 16);
}

}  // namespace

void vector_packed_cases() {
    packed_floats();
    packed_integers();
    mixed();
    dots();
}

TEST(VectorPacked, Floats) { packed_floats(); }
TEST(VectorPacked, Integers) { packed_integers(); }
TEST(VectorPacked, Mixed) { mixed(); }
TEST(VectorPacked, Dots) { dots(); }

}  // namespace onebit::emulator
