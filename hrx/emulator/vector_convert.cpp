// Conversions between number formats.
#include <cmath>

#include "hrx/emulator/math.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

// Signed or unsigned normalised 16-bit integer, round to nearest even.
u32 signed_norm(float value) {
    return value != value
               ? 0
               : static_cast<u16>(static_cast<i16>(std::rint(std::fmin(std::fmax(value, -1.f), 1.f) * 32767.f)));
}
u32 unsigned_norm(float value) {
    return value != value ? 0 : static_cast<u16>(std::rint(std::fmin(std::fmax(value, 0.f), 1.f) * 65535.f));
}
u32 clamp_signed(u32 value, i32 low, i32 high) {
    const i32 number = static_cast<i32>(value);
    return static_cast<u32>(number < low ? low : number > high ? high : number);
}

template <int Byte>
constexpr LaneFunction kByteToF32 = word_1<[](u32 a) { return bits_of(static_cast<float>(a >> 8 * Byte & 255)); }>;

const Operation kOperations[] = {
    {"v_cvt_f32_i32", "f:u", bind_vector,
     word_1<[](u32 a) { return bits_of(static_cast<float>(static_cast<i32>(a))); }>},
    {"v_cvt_f32_u32", "f:u", bind_vector, word_1<[](u32 a) { return bits_of(static_cast<float>(a)); }>},
    {"v_cvt_i32_f32", "u:f", bind_vector, word_1<[](u32 a) { return static_cast<u32>(saturate<i32>(as_f32(a))); }>},
    {"v_cvt_u32_f32", "u:f", bind_vector, word_1<[](u32 a) { return saturate<u32>(as_f32(a)); }>},
    {"v_cvt_nearest_i32_f32", "u:f", bind_vector,
     word_1<[](u32 a) { return static_cast<u32>(saturate<i32>(std::floor(static_cast<double>(as_f32(a)) + 0.5))); }>},
    {"v_cvt_floor_i32_f32", "u:f", bind_vector,
     word_1<[](u32 a) { return static_cast<u32>(saturate<i32>(std::floor(as_f32(a)))); }>},
    {"v_cvt_f32_f16", "f:h", bind_vector, word_1<[](u32 a) { return bits_of(static_cast<float>(as_f16(a))); }>},
    {"v_cvt_f16_f32", "h:f", bind_vector, word_1<[](u32 a) { return bits_of(static_cast<f16>(as_f32(a))); }>},
    {"v_cvt_f16_u16", "h:w", bind_vector,
     word_1<[](u32 a) { return bits_of(static_cast<f16>(static_cast<float>(a & 0xffff))); }>},
    {"v_cvt_f16_i16", "h:w", bind_vector,
     word_1<[](u32 a) { return bits_of(static_cast<f16>(static_cast<float>(static_cast<i16>(a)))); }>},
    {"v_cvt_u16_f16", "w:h", bind_vector,
     word_1<[](u32 a) { return static_cast<u32>(saturate<u16>(static_cast<float>(as_f16(a)))); }>},
    {"v_cvt_i16_f16", "w:h", bind_vector,
     word_1<[](u32 a) { return static_cast<u32>(static_cast<u16>(saturate<i16>(static_cast<float>(as_f16(a))))); }>},
    {"v_cvt_i32_i16", "u:w", bind_vector,
     word_1<[](u32 a) { return static_cast<u32>(static_cast<i32>(static_cast<i16>(a))); }>},
    {"v_cvt_u32_u16", "u:w", bind_vector, word_1<[](u32 a) { return a & 0xffff; }>},
    {"v_cvt_f32_ubyte0", "f:u", bind_vector, kByteToF32<0>},
    {"v_cvt_f32_ubyte1", "f:u", bind_vector, kByteToF32<1>},
    {"v_cvt_f32_ubyte2", "f:u", bind_vector, kByteToF32<2>},
    {"v_cvt_f32_ubyte3", "f:u", bind_vector, kByteToF32<3>},
    // the low four bits, signed, in sixteenths
    {"v_cvt_off_f32_i4", "f:u", bind_vector,
     word_1<[](u32 a) { return bits_of(static_cast<float>(static_cast<i32>(a << 28) >> 28) / 16.0f); }>},
    {"v_cvt_f64_f32", "d:f", bind_vector,
     wide_3<8, [](u64 a, u64, u64) { return bits_of(static_cast<double>(as_f32(static_cast<u32>(a)))); }>},
    {"v_cvt_f64_i32", "d:u", bind_vector,
     wide_3<8, [](u64 a, u64, u64) { return bits_of(static_cast<double>(static_cast<i32>(static_cast<u32>(a)))); }>},
    {"v_cvt_f64_u32", "d:u", bind_vector,
     wide_3<8, [](u64 a, u64, u64) { return bits_of(static_cast<double>(static_cast<u32>(a))); }>},
    {"v_cvt_f32_f64", "f:d", bind_vector,
     wide_3<1, [](u64 a, u64, u64) { return static_cast<u64>(bits_of(static_cast<float>(as_f64(a)))); }>},
    {"v_cvt_i32_f64", "u:d", bind_vector,
     wide_3<1, [](u64 a, u64, u64) { return static_cast<u64>(static_cast<u32>(saturate<i32>(as_f64(a)))); }>},
    {"v_cvt_u32_f64", "u:d", bind_vector,
     wide_3<1, [](u64 a, u64, u64) { return static_cast<u64>(saturate<u32>(as_f64(a))); }>},
    {"v_cvt_pk_rtz_f16_f32", "u:ff", bind_vector, word_2<[](u32 a, u32 b) {
         return bits_of(half_towards_zero(as_f32(a))) | bits_of(half_towards_zero(as_f32(b))) << 16;
     }>},
    {"v_cvt_pk_norm_i16_f32", "u:ff", bind_vector,
     word_2<[](u32 a, u32 b) { return signed_norm(as_f32(a)) | signed_norm(as_f32(b)) << 16; }>},
    {"v_cvt_pk_norm_u16_f32", "u:ff", bind_vector,
     word_2<[](u32 a, u32 b) { return unsigned_norm(as_f32(a)) | unsigned_norm(as_f32(b)) << 16; }>},
    {"v_cvt_pk_i16_f32", "u:ff", bind_vector, word_2<[](u32 a, u32 b) {
         return static_cast<u32>(static_cast<u16>(saturate<i16>(as_f32(a)))) |
                static_cast<u32>(static_cast<u16>(saturate<i16>(as_f32(b)))) << 16;
     }>},
    {"v_cvt_pk_u16_f32", "u:ff", bind_vector, word_2<[](u32 a, u32 b) {
         return static_cast<u32>(saturate<u16>(as_f32(a))) | static_cast<u32>(saturate<u16>(as_f32(b))) << 16;
     }>},
    {"v_cvt_pk_i16_i32", "u:uu", bind_vector, word_2<[](u32 a, u32 b) {
         return (clamp_signed(a, -32768, 32767) & 0xffff) | clamp_signed(b, -32768, 32767) << 16;
     }>},
    {"v_cvt_pk_u16_u32", "u:uu", bind_vector,
     word_2<[](u32 a, u32 b) { return (a > 0xffff ? 0xffff : a) | (b > 0xffff ? 0xffff : b) << 16; }>},
    // byte b of c becomes a rounded to an integer
    {"v_cvt_pk_u8_f32", "u:fuu", bind_vector, word_3<[](u32 a, u32 b, u32 c) {
         const u32 shift = 8 * (b & 3);
         return (c & ~(0xffu << shift)) | static_cast<u32>(saturate<u8>(std::rint(as_f32(a)))) << shift;
     }>},
    {"v_sat_pk_u8_i16", "w:u", bind_vector, word_1<[](u32 a) {
         const u32 low = clamp_signed(static_cast<u32>(static_cast<i32>(static_cast<i16>(a))), 0, 255);
         const u32 high = clamp_signed(static_cast<u32>(static_cast<i32>(static_cast<i16>(a >> 16))), 0, 255);
         return low | high << 8;
     }>},
    {"v_pack_b32_f16", "u:hh", bind_vector, word_2<[](u32 a, u32 b) { return (a & 0xffff) | b << 16; }>},
};

}  // namespace

std::span<const Operation> vector_convert_operations() { return kOperations; }

}  // namespace onebit::emulator
