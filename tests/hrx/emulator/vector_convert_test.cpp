// If this fails, conversions between number formats are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

double F(u32 x) { return static_cast<double>(as_f32(x)); }
double H(u32 x) { return static_cast<double>(as_f16(x)); }
// Towards zero, saturating, 0 for NaN.
i64 to_integer(double x, double least, double most) {
    if (std::isnan(x)) return 0;
    return static_cast<i64>(std::trunc(std::clamp(x, least, most)));
}
u32 float_of(double x) { return bits_of(static_cast<float>(x)); }
u32 in_low(u32 old, u32 value) { return (old & 0xffff0000u) | (value & 0xffff); }
u32 norm(double x, double least, double scale) {
    if (std::isnan(x)) return 0;
    return static_cast<u32>(static_cast<i32>(std::nearbyint(std::clamp(x, least, 1.0) * scale))) & 0xffff;
}
// The f16 at or next towards zero.
u32 truncated_half(double x) {
    u32 bits = bits_of(static_cast<f16>(static_cast<float>(x)));
    if (std::isfinite(x) && std::fabs(H(bits)) > std::fabs(x)) --bits;
    return bits;
}

void words() {
    check_words("v_cvt_f32_i32 v0, v1", kIntegerEdges,
                [](u32 a, u32, u32, u32) { return float_of(static_cast<i32>(a)); });
    check_words("v_cvt_f32_u32 v0, v1", kIntegerEdges, [](u32 a, u32, u32, u32) { return float_of(a); });
    check_words("v_cvt_i32_f32 v0, v1", kFloatEdges,
                [](u32 a, u32, u32, u32) { return static_cast<u32>(to_integer(F(a), INT32_MIN, INT32_MAX)); });
    check_words("v_cvt_u32_f32 v0, v1", kFloatEdges,
                [](u32 a, u32, u32, u32) { return static_cast<u32>(to_integer(F(a), 0, UINT32_MAX)); });
    check_words("v_cvt_nearest_i32_f32 v0, v1", kFloatEdges, [](u32 a, u32, u32, u32) {
        return static_cast<u32>(to_integer(std::floor(F(a) + 0.5), INT32_MIN, INT32_MAX));
    });
    check_words("v_cvt_floor_i32_f32 v0, v1", kFloatEdges, [](u32 a, u32, u32, u32) {
        return static_cast<u32>(to_integer(std::floor(F(a)), INT32_MIN, INT32_MAX));
    });
    check_words("v_cvt_f32_f16 v0, v1", kHalfEdges, [](u32 a, u32, u32, u32) { return float_of(H(a)); });
    check_words("v_cvt_f16_f32 v0, v1", kFloatEdges,
                [](u32 a, u32, u32, u32 old) { return in_low(old, bits_of(static_cast<f16>(as_f32(a)))); });
    check_words("v_cvt_f16_u16 v0, v1", kIntegerEdges, [](u32 a, u32, u32, u32 old) {
        return in_low(old, bits_of(static_cast<f16>(static_cast<float>(a & 0xffff))));
    });
    check_words("v_cvt_f16_i16 v0, v1", kIntegerEdges, [](u32 a, u32, u32, u32 old) {
        return in_low(old, bits_of(static_cast<f16>(static_cast<float>(static_cast<i16>(a)))));
    });
    check_words("v_cvt_u16_f16 v0, v1", kHalfEdges,
                [](u32 a, u32, u32, u32 old) { return in_low(old, static_cast<u32>(to_integer(H(a), 0, 65535))); });
    check_words("v_cvt_i16_f16 v0, v1", kHalfEdges, [](u32 a, u32, u32, u32 old) {
        return in_low(old, static_cast<u32>(to_integer(H(a), -32768, 32767)));
    });
    check_words("v_cvt_i32_i16 v0, v1", kIntegerEdges,
                [](u32 a, u32, u32, u32) { return static_cast<u32>(static_cast<i32>(static_cast<i16>(a))); });
    check_words("v_cvt_u32_u16 v0, v1", kIntegerEdges, [](u32 a, u32, u32, u32) { return a & 0xffff; });
    for (int byte = 0; byte < 4; ++byte)
        check_words("v_cvt_f32_ubyte" + std::to_string(byte) + " v0, v1", kIntegerEdges,
                    [=](u32 a, u32, u32, u32) { return float_of(a >> 8 * byte & 255); });
    check_words("v_cvt_off_f32_i4 v0, v1", {0, 1, 7, 8, 9, 15, 0xffffff07}, [](u32 a, u32, u32, u32) {
        const i32 nibble = static_cast<i32>(a & 15);
        return float_of((nibble >= 8 ? nibble - 16 : nibble) / 16.0);
    });
}

void packed() {
    check_words("v_cvt_pk_rtz_f16_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return truncated_half(F(a)) | truncated_half(F(b)) << 16; });
    check_words("v_cvt_pk_norm_i16_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return norm(F(a), -1, 32767) | norm(F(b), -1, 32767) << 16; });
    check_words("v_cvt_pk_norm_u16_f32 v0, v1, v2", kFloatEdges,
                [](u32 a, u32 b, u32, u32) { return norm(F(a), 0, 65535) | norm(F(b), 0, 65535) << 16; });
    auto pack = [](i64 low, i64 high) { return (static_cast<u32>(low) & 0xffff) | static_cast<u32>(high) << 16; };
    check_words("v_cvt_pk_i16_f32 v0, v1, v2", kFloatEdges, [=](u32 a, u32 b, u32, u32) {
        return pack(to_integer(F(a), -32768, 32767), to_integer(F(b), -32768, 32767));
    });
    check_words("v_cvt_pk_u16_f32 v0, v1, v2", kFloatEdges,
                [=](u32 a, u32 b, u32, u32) { return pack(to_integer(F(a), 0, 65535), to_integer(F(b), 0, 65535)); });
    auto S = [](u32 x) { return static_cast<double>(static_cast<i32>(x)); };
    check_words("v_cvt_pk_i16_i32 v0, v1, v2", kIntegerEdges, [=](u32 a, u32 b, u32, u32) {
        return pack(to_integer(S(a), -32768, 32767), to_integer(S(b), -32768, 32767));
    });
    check_words("v_cvt_pk_u16_u32 v0, v1, v2", kIntegerEdges,
                [=](u32 a, u32 b, u32, u32) { return pack(to_integer(a, 0, 65535), to_integer(b, 0, 65535)); });
    check_words("v_cvt_pk_u8_f32 v0, v1, v2, v3", {0x3f800000, 0x437f0000, 0x43c80000, 2, 0xc0000000, 0x42f6e979, 7},
                [](u32 a, u32 b, u32 c, u32) {
                    const u32 byte = static_cast<u32>(to_integer(std::nearbyint(F(a)), 0, 255));
                    const u32 shift = 8 * (b % 4);
                    return (c & ~(255u << shift)) | byte << shift;
                });
    check_words("v_sat_pk_u8_i16 v0, v1", kIntegerEdges, [](u32 a, u32, u32, u32 old) {
        const i32 low = std::clamp<i32>(static_cast<i16>(a), 0, 255);
        const i32 high = std::clamp<i32>(static_cast<i16>(a >> 16), 0, 255);
        return in_low(old, static_cast<u32>(low | high << 8));
    });
    check_words("v_pack_b32_f16 v0, v1, v2", kHalfEdges, [](u32 a, u32 b, u32, u32) { return (a & 0xffff) | b << 16; });
    check_words("v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]", kHalfEdges,
                [](u32 a, u32 b, u32, u32) { return a >> 16 | b << 16; });
}

void wide() {
    for (u32 value : kFloatEdges) {
        Machine machine;
        machine.v(1, value).ok("v_cvt_f64_f32 v[2:3], v1\nv_cvt_f64_i32 v[4:5], v1\nv_cvt_f64_u32 v[6:7], v1");
        EXPECT_TRUE(same_f64(machine.get_v64(2, 3), bits_of(F(value)))) << value;
        EXPECT_EQ(as_f64(machine.get_v64(4, 3)), static_cast<i32>(value));
        EXPECT_EQ(as_f64(machine.get_v64(6, 3)), value);
    }
    for (u64 value : kDoubleEdges) {
        Machine machine;
        machine.v64(2, [=](int) { return value; });
        machine.ok("v_cvt_f32_f64 v0, v[2:3]\nv_cvt_i32_f64 v1, v[2:3]\nv_cvt_u32_f64 v4, v[2:3]");
        const double x = as_f64(value);
        EXPECT_TRUE(same_f32(machine.get_v(0, 31), float_of(x))) << x;
        EXPECT_EQ(machine.get_v(1, 31), static_cast<u32>(to_integer(x, INT32_MIN, INT32_MAX))) << x;
        EXPECT_EQ(machine.get_v(4, 31), static_cast<u32>(to_integer(x, 0, UINT32_MAX))) << x;
    }
}

}  // namespace

void vector_convert_cases() {
    words();
    packed();
    wide();
}

TEST(VectorConvert, Words) { words(); }
TEST(VectorConvert, Packed) { packed(); }
TEST(VectorConvert, Wide) { wide(); }

}  // namespace onebit::emulator
