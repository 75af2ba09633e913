// Short integer names and bit casts of the interpreter, whose formulas are those of the RDNA3.5 ISA reference.
#pragma once

#include <bit>
#include <cstdint>

namespace onebit::emulator {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f16 = _Float16;

inline constexpr int kLanes = 32;
inline constexpr u32 kAllLanes = 0xffffffffu;

// Operand encodings of scalar registers and of what reads like one (ISA reference, "Scalar Instruction Operands").
inline constexpr u16 kVcc = 106;
inline constexpr u16 kM0 = 124;
inline constexpr u16 kNull = 125;
inline constexpr u16 kExec = 126;
inline constexpr u16 kScalarRegisters = 128;
inline constexpr u16 kSharedBase = 235;
inline constexpr u16 kSharedLimit = 236;
inline constexpr u16 kPrivateBase = 237;
inline constexpr u16 kPrivateLimit = 238;
inline constexpr u16 kVccZero = 251;
inline constexpr u16 kExecZero = 252;
inline constexpr u16 kScc = 253;

// Apertures of flat addresses: the high half of an address inside them. Below all user addresses of x86-64 Linux's
// half.
inline constexpr u32 kSharedApertureHigh = 0x00010000;
inline constexpr u32 kPrivateApertureHigh = 0x00020000;

inline float as_f32(u32 bits) { return std::bit_cast<float>(bits); }
inline u32 bits_of(float value) { return std::bit_cast<u32>(value); }
inline double as_f64(u64 bits) { return std::bit_cast<double>(bits); }
inline u64 bits_of(double value) { return std::bit_cast<u64>(value); }
inline f16 as_f16(u32 bits) { return std::bit_cast<f16>(static_cast<u16>(bits)); }
inline u32 bits_of(f16 value) { return std::bit_cast<u16>(value); }

}  // namespace onebit::emulator
