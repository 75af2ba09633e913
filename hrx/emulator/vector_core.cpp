#include "hrx/emulator/vector_core.h"

#include <algorithm>
#include <cstring>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/value.h"

namespace onebit::emulator {
namespace {

void broadcast(u32* buffer, u32 value) { std::fill(buffer, buffer + kLanes, value); }

void clamp_result(const Operand& destination, u32* values) {
    // NaN becomes 0, as DX10_CLAMP asks; the kernel descriptor is checked for it
    const auto clamp = [](auto value) { return value > 0 ? (value < 1 ? value : decltype(value){1}) : 0; };
    const auto half = [&](u32 bits) { return bits_of(static_cast<f16>(clamp(static_cast<float>(as_f16(bits))))); };
    for (int lane = 0; lane < kLanes; ++lane) {
        switch (destination.type) {
            case ValueType::f32:
                values[lane] = bits_of(clamp(as_f32(values[lane])));
                break;
            case ValueType::f16:
                values[lane] = half(values[lane]);
                break;
            case ValueType::packed_f16:
                values[lane] = half(values[lane]) | half(values[lane] >> 16) << 16;
                break;
            case ValueType::f64: {
                const u64 value = bits_of(clamp(as_f64(wide_at(values, lane))));
                values[lane] = static_cast<u32>(value);
                values[kLanes + lane] = static_cast<u32>(value >> 32);
                break;
            }
            default:
                return;  // binders refuse it on integers
        }
    }
}

}  // namespace

const u32* fetch_raw(const Wave& wave, const Operand& operand, u32* buffer) {
    switch (operand.kind) {
        case OperandKind::vgpr:
            return wave.v[operand.index];
        case OperandKind::constant:
            return operand.lanes;
        case OperandKind::sgpr:
            if (operand.type == ValueType::mask) {
                const u32 mask = wave.scalar(operand);
                for (int lane = 0; lane < kLanes; ++lane) buffer[lane] = mask >> lane & 1;
                return buffer;
            }
            broadcast(buffer, wave.scalar(operand, 0));
            if (operand.words > 1) broadcast(buffer + kLanes, wave.scalar(operand, 1));
            return buffer;
        default:
            broadcast(buffer, 0);
            return buffer;
    }
}

void apply_modifiers(const Operand& o, u32* values) {
    switch (o.type) {
        case ValueType::f32: {
            const u32 keep = o.absolute ? 0x7fffffffu : 0xffffffffu;
            const u32 flip = o.negate ? 0x80000000u : 0;
            for (int lane = 0; lane < kLanes; ++lane) values[lane] = (values[lane] & keep) ^ flip;
            return;
        }
        case ValueType::f64:
            for (int lane = 0; lane < kLanes; ++lane)
                values[kLanes + lane] =
                    static_cast<u32>(prepare_value(o, static_cast<u64>(values[kLanes + lane]) << 32) >> 32);
            return;
        case ValueType::bits32:
        case ValueType::bits64:
        case ValueType::mask:
            return;
        default:
            for (int lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<u32>(prepare_value(o, values[lane]));
    }
}

const u32* fetch_slow(const Wave& wave, const Operand& operand, u32* buffer) {
    const u32* raw = fetch_raw(wave, operand, buffer);
    if (operand.kind == OperandKind::constant) return raw;
    if (raw != buffer) std::memcpy(buffer, raw, sizeof(u32) * kLanes * operand.words);
    apply_modifiers(operand, buffer);
    return buffer;
}

void store_lanes(Wave& wave, u16 index, const u32* values, u32 exec) {
    u32* destination = wave.v[index];
    if (exec == kAllLanes) {
        std::memcpy(destination, values, sizeof(u32) * kLanes);
        return;
    }
    for (int lane = 0; lane < kLanes; ++lane)
        destination[lane] = (exec >> lane & 1) != 0 ? values[lane] : destination[lane];
}

void store_result(Wave& wave, const Instruction& instruction, const Operand& destination, u32* values, u32 exec) {
    if (instruction.clamp) clamp_result(destination, values);
    if (instruction.half != Half::whole) {
        const u32* old = wave.v[destination.index];
        for (int lane = 0; lane < kLanes; ++lane)
            values[lane] = instruction.half == Half::low ? (old[lane] & 0xffff0000u) | (values[lane] & 0xffff)
                                                         : (old[lane] & 0xffff) | values[lane] << 16;
    }
    store_lanes(wave, destination.index, values, exec);
    if (destination.words > 1) store_lanes(wave, destination.index + 1, values + kLanes, exec);
}

void execute_vector(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[3][2 * kLanes];
    const u32* a = fetch(wave, i.source[0], buffers[0]);
    const u32* b = i.sources > 1 ? fetch(wave, i.source[1], buffers[1]) : a;
    const u32* c = i.sources > 2 ? fetch(wave, i.source[2], buffers[2]) : a;
    const u32 exec = wave.exec();
    if (i.direct && exec == kAllLanes) {
        i.run.lanes(wave.v[i.destination.index], a, b, c);
        return;
    }
    alignas(64) u32 out[2 * kLanes];
    i.run.lanes(out, a, b, c);
    store_result(wave, i, i.destination, out, exec);
}

u32 permute_dpp(Wave& wave, const Instruction& i, const Operand& operand, u32* values) {
    alignas(64) u32 buffer[2 * kLanes];
    const u32* raw = fetch_raw(wave, operand, buffer);
    const u32 exec = wave.exec();
    u32 written = exec;
    u32 read = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int row = lane & 16;
        const int in_row = lane & 15;
        const u32 control = i.dpp.control;
        const int amount = static_cast<int>(control & 15);
        int from = -1;  // none: outside of the row
        if (control == 0x200) {
            from = (lane & ~7) | static_cast<int>(i.dpp.selectors >> 3 * (lane & 7) & 7);
        } else if (control < 0x100) {
            from = (lane & ~3) | static_cast<int>(control >> 2 * (lane & 3) & 3);
        } else if (control > 0x100 && control < 0x110) {
            if (in_row + amount < 16) from = lane + amount;
        } else if (control > 0x110 && control < 0x120) {
            if (in_row >= amount) from = lane - amount;
        } else if (control > 0x120 && control < 0x130) {
            from = row | ((in_row - amount) & 15);
        } else if (control == 0x140) {
            from = row | (15 - in_row);
        } else if (control == 0x141) {
            from = row | (in_row ^ 7);
        } else if (control >= 0x150 && control < 0x160) {
            from = row | amount;
        } else {
            from = lane ^ amount;
        }
        const bool valid = from >= 0 && (i.dpp.fetch_inactive || (exec >> from & 1) != 0);
        values[lane] = valid ? raw[from] : 0;
        if (valid && (exec >> lane & 1) != 0) read |= 1u << from;
        const bool enabled = (i.dpp.row_mask >> (lane >> 4) & 1) != 0 && (i.dpp.bank_mask >> (lane >> 2 & 3) & 1) != 0;
        if (!enabled || (!valid && !i.dpp.bound_control)) written &= ~(1u << lane);
    }
    if (wave.checks != nullptr && operand.kind == OperandKind::vgpr)
        wave.checks->require_lanes(wave, i, operand.index, read);
    apply_modifiers(operand, values);
    return written;
}

void execute_vector_dpp(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[3][2 * kLanes];
    alignas(64) u32 out[2 * kLanes];
    const u32 written = permute_dpp(wave, i, i.source[0], buffers[0]);
    const u32* a = buffers[0];
    const u32* b = i.sources > 1 ? fetch(wave, i.source[1], buffers[1]) : a;
    const u32* c = i.sources > 2 ? fetch(wave, i.source[2], buffers[2]) : a;
    i.run.lanes(out, a, b, c);
    store_result(wave, i, i.destination, out, written);
    if (wave.checks != nullptr) wave.checks->wrote_lanes(i.destination.index, i.destination.words, written);
}

void execute_dual(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[3][2 * kLanes];
    alignas(64) u32 x[kLanes];
    alignas(64) u32 y[kLanes];
    // both halves read before either writes
    for (int half = 0; half < 2; ++half) {
        const Operand* source = i.source + 3 * half;
        const int count = half == 0 ? i.sources : i.sources_y;
        const u32* a = fetch(wave, source[0], buffers[0]);
        const u32* b = count > 1 ? fetch(wave, source[1], buffers[1]) : a;
        const u32* c = count > 2 ? fetch(wave, source[2], buffers[2]) : a;
        (half == 0 ? i.run.lanes : i.lanes_y)(half == 0 ? x : y, a, b, c);
    }
    store_lanes(wave, i.destination.index, x, wave.exec());
    store_lanes(wave, i.destination2.index, y, wave.exec());
}

void execute_carry(Wave& wave, const Instruction& i) {
    alignas(64) u32 buffers[3][2 * kLanes];
    alignas(64) u32 out[3 * kLanes];
    const u32* a = fetch(wave, i.source[0], buffers[0]);
    const u32* b = i.sources > 1 ? fetch(wave, i.source[1], buffers[1]) : a;
    const u32* c = i.sources > 2 ? fetch(wave, i.source[2], buffers[2]) : a;
    i.run.lanes(out, a, b, c);
    const u32 exec = wave.exec();
    const u32* carries = out + kLanes * i.destination.words;
    u32 mask = 0;
    for (int lane = 0; lane < kLanes; ++lane) mask |= (carries[lane] & 1) << lane;
    store_result(wave, i, i.destination, out, exec);
    wave.set_scalar(i.destination2, mask & exec);
}

}  // namespace onebit::emulator
