#include "hrx/emulator/memory_access.h"

#include <cstdio>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/lds_races.h"
#include "hrx/emulator/trap.h"

namespace onebit::emulator {
namespace {

std::string hexadecimal(u64 value) {
    char text[24];
    std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

void require_aligned(Wave& wave, const Instruction& i, int lane, u64 address, u32 bytes, Access access) {
    if (access == Access::atomic && (address & (bytes - 1)) != 0)
        raise_trap(TrapKind::misaligned, wave, i, lane,
                   "an atomic of " + std::to_string(bytes) + " bytes at " + hexadecimal(address) +
                       "; expected an address that is a multiple of its size",
                   address);
}

}  // namespace

u8* global_pointer(Wave& wave, const Instruction& i, int lane, u64 address, u32 bytes, Access access) {
    require_aligned(wave, i, lane, address, bytes, access);
    if (!wave.group->memory->inside(address, bytes, access != Access::load))
        raise_trap(TrapKind::out_of_bounds, wave, i, lane,
                   std::to_string(bytes) + " bytes at " + hexadecimal(address) + " are not inside of any " +
                       (access == Access::load ? "allocation" : "writable allocation") +
                       wave.group->memory->nearest(address),
                   address);
    return reinterpret_cast<u8*>(address);
}

u8* lds_pointer(Wave& wave, const Instruction& i, int lane, u32 address, u32 bytes, Access access) {
    auto& lds = wave.group->lds;
    require_aligned(wave, i, lane, address, bytes, access);
    if (address > lds.size() || lds.size() - address < bytes)
        raise_trap(TrapKind::out_of_bounds, wave, i, lane,
                   std::to_string(bytes) + " bytes at LDS address " + std::to_string(address) + ", the group has " +
                       std::to_string(lds.size()) + " bytes",
                   address);
    if (LdsRaces* races = wave.group->races) {
        if (access != Access::store) races->read(wave, i, lane, address, bytes, access == Access::atomic);
        if (access != Access::load) {
            races->write(wave, i, lane, address, bytes, access == Access::atomic);
            wave.checks->lds_store(address, bytes);
        }
    }
    return lds.data() + address;
}

u8* scratch_pointer(Wave& wave, const Instruction& i, int lane, u32 offset, u32 bytes) {
    if (offset > wave.scratch_bytes || wave.scratch_bytes - offset < bytes)
        raise_trap(TrapKind::out_of_bounds, wave, i, lane,
                   std::to_string(bytes) + " bytes at scratch offset " + std::to_string(static_cast<i32>(offset)) +
                       ", a work-item has " + std::to_string(wave.scratch_bytes) + " bytes",
                   offset);
    return wave.scratch->data() + static_cast<std::size_t>(lane) * wave.scratch_bytes + offset;
}

u8* flat_pointer(Wave& wave, const Instruction& i, int lane, u64 address, u32 bytes, Access access) {
    const u32 high = static_cast<u32>(address >> 32);
    if (high == kSharedApertureHigh) return lds_pointer(wave, i, lane, static_cast<u32>(address), bytes, access);
    if (high == kPrivateApertureHigh) return scratch_pointer(wave, i, lane, static_cast<u32>(address), bytes);
    return global_pointer(wave, i, lane, address, bytes, access);
}

void lane_addresses(const Wave& wave, const Instruction& i, u64* addresses) {
    const Operand& vector = i.source[0];
    const Operand& scalar = i.source[2];
    const u64 offset = static_cast<u64>(static_cast<i64>(i.offset));
    if (static_cast<Segment>(i.immediate) == Segment::scratch) {
        const u32 base = (scalar.kind == OperandKind::none ? 0 : wave.scalar(scalar)) + static_cast<u32>(i.offset);
        for (int lane = 0; lane < kLanes; ++lane)
            addresses[lane] = base + (vector.kind == OperandKind::none ? 0 : wave.v[vector.index][lane]);
        return;
    }
    if (scalar.kind == OperandKind::none) {
        const u32* low = wave.v[vector.index];
        const u32* high = wave.v[vector.index + 1];
        for (int lane = 0; lane < kLanes; ++lane)
            addresses[lane] = (low[lane] | static_cast<u64>(high[lane]) << 32) + offset;
        return;
    }
    const u64 base = wave.scalar64(scalar) + offset;
    const u32* low = wave.v[vector.index];
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base + low[lane];
}

std::string bind_address(BindContext& context, Segment segment, const AsmOperand& vector, const AsmOperand* scalar) {
    using Kind = AsmOperand::Kind;
    Instruction& out = context.out;
    out.immediate = static_cast<u16>(segment);
    out.offset = offset_modifier(context.text);
    const bool has_scalar =
        scalar != nullptr && scalar->kind != Kind::off && !(scalar->kind == Kind::sgpr && scalar->index == kNull);
    if (has_scalar) {
        const u8 words = segment == Segment::scratch ? 1 : 2;
        if (scalar->kind != Kind::sgpr || scalar->words < words) return "address register " + scalar->text;
        out.source[2] = scalar_register(scalar->index, words);
        note_read(context, out.source[2]);
    }
    if (vector.kind == Kind::off) return segment == Segment::scratch ? std::string() : "address 'off'";
    const u8 words = segment == Segment::scratch || has_scalar ? 1 : 2;
    if (vector.kind != Kind::vgpr || vector.words != words) return "address register " + vector.text;
    out.source[0] = vector_register(vector.index, words);
    note_read(context, out.source[0]);
    return {};
}

u32 extend(u32 value, u32 bytes, u32 format, u32 old) {
    if ((format & kSigned) != 0) {
        const u32 shift = 32 - 8 * bytes;
        value = static_cast<u32>(static_cast<i32>(value << shift) >> shift);
    }
    if ((format & kD16) != 0) return (old & 0xffff0000u) | (value & 0xffff);
    if ((format & kD16High) != 0) return (old & 0xffff) | value << 16;
    return value;
}

}  // namespace onebit::emulator
