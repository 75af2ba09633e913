// Input modifiers (neg, abs, op_sel) on one value, and output modifiers (clamp, omod).
#pragma once

#include "hrx/emulator/instruction.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

// The value that an operation sees for the raw register contents `bits` (low word first).
inline u64 prepare_value(const Operand& o, u64 bits) {
    switch (o.type) {
        case ValueType::f32: {
            u32 value = static_cast<u32>(bits);
            if (o.absolute) value &= 0x7fffffffu;
            if (o.negate) value ^= 0x80000000u;
            return value;
        }
        case ValueType::f64: {
            if (o.absolute) bits &= ~(u64{1} << 63);
            if (o.negate) bits ^= u64{1} << 63;
            return bits;
        }
        case ValueType::f16: {
            u32 value = static_cast<u32>(o.select ? bits >> 16 : bits) & 0xffff;
            if (o.absolute) value &= 0x7fff;
            if (o.negate) value ^= 0x8000;
            return value;
        }
        case ValueType::int16:
            return static_cast<u32>(o.select ? bits >> 16 : bits) & 0xffff;
        case ValueType::packed_f16:
        case ValueType::packed_i16: {
            const u32 low = static_cast<u32>(o.select ? bits >> 16 : bits) & 0xffff;
            const u32 high = static_cast<u32>(o.select_high ? bits >> 16 : bits) & 0xffff;
            u32 value = low | high << 16;
            if (o.type == ValueType::packed_f16)
                value ^= (o.negate ? 0x8000u : 0u) | (o.negate_high ? 0x80000000u : 0u);
            return value;
        }
        case ValueType::mixed: {
            u32 value = static_cast<u32>(bits);
            if (o.select_high) value = bits_of(static_cast<float>(as_f16(o.select ? value >> 16 : value)));
            if (o.absolute) value &= 0x7fffffffu;
            if (o.negate) value ^= 0x80000000u;
            return value;
        }
        default:
            return bits;
    }
}

}  // namespace onebit::emulator
