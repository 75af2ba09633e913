// The one way to memory: bounds, alignment and race checks for global memory, LDS and scratch.
#pragma once

#include "hrx/emulator/bind.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

enum class Access : u8 { load, store, atomic };

// Host pointers to `bytes` bytes; trap when they lie outside or an atomic is not aligned.
u8* global_pointer(Wave& wave, const Instruction& instruction, int lane, u64 address, u32 bytes, Access access);
u8* lds_pointer(Wave& wave, const Instruction& instruction, int lane, u32 address, u32 bytes, Access access);
u8* scratch_pointer(Wave& wave, const Instruction& instruction, int lane, u32 offset, u32 bytes);
// Any of the three, by the aperture.
u8* flat_pointer(Wave& wave, const Instruction& instruction, int lane, u64 address, u32 bytes, Access access);

enum class Segment : u16 { global, flat, scratch };

// Addresses (offsets for scratch) of all lanes; those of disabled lanes are meaningless.
void lane_addresses(const Wave& wave, const Instruction& instruction, u64* addresses);

// Operands of an address as the text shows them: vector part into source[0], scalar part into source[2].
std::string bind_address(BindContext& context, Segment segment, const AsmOperand& vector, const AsmOperand* scalar);

// Layout of a row's value: how many bytes, how they extend.
inline constexpr u32 kSigned = 1u << 8;
inline constexpr u32 kD16 = 1u << 9;       // low half of the register, the other half stays
inline constexpr u32 kD16High = 1u << 10;  // high half

// A loaded value of one or two bytes as it goes into the register.
u32 extend(u32 value, u32 bytes, u32 format, u32 old);

}  // namespace onebit::emulator
