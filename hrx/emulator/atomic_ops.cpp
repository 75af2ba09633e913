// Atomics on global, flat and LDS addresses.
#include "hrx/emulator/atomic_ops.h"

#include <atomic>
#include <cstring>

#include "hrx/emulator/memory_access.h"

namespace onebit::emulator {
namespace {

template <typename T>
T data_of(const Wave& wave, u16 index, int lane) {
    if constexpr (sizeof(T) == 4) return wave.v[index][lane];
    return wave.v[index][lane] | static_cast<u64>(wave.v[index + 1][lane]) << 32;
}

template <typename T, auto F>
T apply(u8* address, T data, T compare) {
    auto& memory = *reinterpret_cast<T*>(address);
    std::atomic_ref<T> atomic(memory);
    T old = atomic.load(std::memory_order_relaxed);
    while (!atomic.compare_exchange_weak(old, F(old, data, compare), std::memory_order_acq_rel)) {
    }
    return old;
}

template <typename T>
void put(Wave& wave, const Instruction& i, int lane, T old) {
    wave.v[i.destination.index][lane] = static_cast<u32>(old);
    if constexpr (sizeof(T) == 8) wave.v[i.destination.index + 1][lane] = static_cast<u32>(old >> 32);
}

// source[1]: data, and behind it the value to compare with.
template <typename T, auto F>
void memory_atomic(Wave& wave, const Instruction& i) {
    alignas(64) u64 addresses[kLanes];
    lane_addresses(wave, i, addresses);
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u8* to = static_cast<Segment>(i.immediate) == Segment::flat
                     ? flat_pointer(wave, i, lane, addresses[lane], sizeof(T), Access::atomic)
                     : global_pointer(wave, i, lane, addresses[lane], sizeof(T), Access::atomic);
        const T data = data_of<T>(wave, i.source[1].index, lane);
        const u16 behind = i.source[1].index + sizeof(T) / 4;
        const T compare = i.source[1].words > sizeof(T) / 4 ? data_of<T>(wave, behind, lane) : 0;
        const T old = apply<T, F>(to, data, compare);
        if (i.returns) put(wave, i, lane, old);
    }
}

// source[0]: address, source[1]: data, source[2]: value to compare with.
template <typename T, auto F>
void lds_atomic(Wave& wave, const Instruction& i) {
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const u32 address = wave.v[i.source[0].index][lane] + static_cast<u32>(i.offset);
        u8* at = lds_pointer(wave, i, lane, address, sizeof(T), Access::atomic);
        T old = 0;
        std::memcpy(&old, at, sizeof(T));
        const T data = data_of<T>(wave, i.source[1].index, lane);
        const T compare = i.source[2].kind == OperandKind::none ? 0 : data_of<T>(wave, i.source[2].index, lane);
        const T result = F(old, data, compare);
        std::memcpy(at, &result, sizeof(T));
        if (i.returns) put(wave, i, lane, old);
    }
}

// value: bytes of the operand; 0x100 with a value to compare.
std::string bind_memory_atomic(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const bool flat = context.text.mnemonic.starts_with("flat");
    if (auto unknown = unknown_modifier(context.text, {"offset", "glc", "slc", "dlc"}); !unknown.empty())
        return unknown;
    const std::size_t plain = flat ? 2 : 3;
    out.returns = context.text.has("glc");
    if (operands.size() != plain + (out.returns ? 1 : 0)) return "operand count";
    const u32 bytes = operation.value & 0xff;
    const u8 words = static_cast<u8>(bytes / 4);
    std::size_t next = 0;
    if (out.returns)
        if (auto problem = bind_destination(context, operands[next++], words, true, out.destination); !problem.empty())
            return problem;
    if (auto problem = bind_address(context, flat ? Segment::flat : Segment::global, operands[next],
                                    flat ? nullptr : &operands[next + 2]);
        !problem.empty())
        return problem;
    const u8 data_words = static_cast<u8>((operation.value & 0x100) != 0 ? 2 * words : words);
    const AsmOperand& data = operands[next + 1];
    if (data.kind != AsmOperand::Kind::vgpr || data.words != data_words) return "data " + data.text;
    out.source[1] = vector_register(data.index, data_words);
    note_read(context, out.source[1]);
    out.bytes = static_cast<u8>(bytes);
    out.handler = operation.handler;
    if (flat)
        context.details.counter = out.returns ? Counter::flat_load : Counter::flat_store;
    else
        context.details.counter = out.returns ? Counter::vector_load : Counter::vector_store;
    return {};
}

// value: bytes; 0x100 with a value to compare; 0x200 returns.
std::string bind_lds_atomic(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (auto unknown = unknown_modifier(context.text, {"offset"}); !unknown.empty()) return unknown;
    const bool compares = (operation.value & 0x100) != 0;
    out.returns = (operation.value & 0x200) != 0;
    const u8 words = static_cast<u8>((operation.value & 0xff) / 4);
    if (operands.size() != 2u + (compares ? 1 : 0) + (out.returns ? 1 : 0)) return "operand count";
    std::size_t next = 0;
    if (out.returns)
        if (auto problem = bind_destination(context, operands[next++], words, true, out.destination); !problem.empty())
            return problem;
    for (std::size_t k = 0; k < (compares ? 3u : 2u); ++k) {
        const AsmOperand& operand = operands[next++];
        const u8 wanted = k == 0 ? 1 : words;
        if (operand.kind != AsmOperand::Kind::vgpr || operand.words != wanted) return "operand " + operand.text;
        out.source[k] = vector_register(operand.index, wanted);
        note_read(context, out.source[k]);
    }
    out.offset = offset_modifier(context.text);
    out.bytes = static_cast<u8>(operation.value);
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

#define MEMORY(prefix, name, T, F, value) \
    { prefix "_atomic_" name, "", bind_memory_atomic, nullptr, nullptr, nullptr, memory_atomic<T, F>, value }
#define MEMORY_ATOMICS(prefix)                                                                                        \
    MEMORY(prefix, "swap_b32", u32, (ATOMIC(u32, data)), 4), MEMORY(prefix, "swap_b64", u64, (ATOMIC(u64, data)), 8), \
        MEMORY(prefix, "cmpswap_b32", u32, (ATOMIC(u32, old == compare ? data : old)), 4 | 0x100),                    \
        MEMORY(prefix, "cmpswap_b64", u64, (ATOMIC(u64, old == compare ? data : old)), 8 | 0x100),                    \
        MEMORY(prefix, "add_u32", u32, (ATOMIC(u32, old + data)), 4),                                                 \
        MEMORY(prefix, "add_u64", u64, (ATOMIC(u64, old + data)), 8),                                                 \
        MEMORY(prefix, "sub_u32", u32, (ATOMIC(u32, old - data)), 4),                                                 \
        MEMORY(prefix, "sub_u64", u64, (ATOMIC(u64, old - data)), 8),                                                 \
        MEMORY(prefix, "min_i32", u32, atomic_min_signed<u32>, 4),                                                    \
        MEMORY(prefix, "min_i64", u64, atomic_min_signed<u64>, 8),                                                    \
        MEMORY(prefix, "max_i32", u32, atomic_max_signed<u32>, 4),                                                    \
        MEMORY(prefix, "max_i64", u64, atomic_max_signed<u64>, 8),                                                    \
        MEMORY(prefix, "min_u32", u32, (ATOMIC(u32, std::min(old, data))), 4),                                        \
        MEMORY(prefix, "min_u64", u64, (ATOMIC(u64, std::min(old, data))), 8),                                        \
        MEMORY(prefix, "max_u32", u32, (ATOMIC(u32, std::max(old, data))), 4),                                        \
        MEMORY(prefix, "max_u64", u64, (ATOMIC(u64, std::max(old, data))), 8),                                        \
        MEMORY(prefix, "and_b32", u32, (ATOMIC(u32, old & data)), 4),                                                 \
        MEMORY(prefix, "and_b64", u64, (ATOMIC(u64, old & data)), 8),                                                 \
        MEMORY(prefix, "or_b32", u32, (ATOMIC(u32, old | data)), 4),                                                  \
        MEMORY(prefix, "or_b64", u64, (ATOMIC(u64, old | data)), 8),                                                  \
        MEMORY(prefix, "xor_b32", u32, (ATOMIC(u32, old ^ data)), 4),                                                 \
        MEMORY(prefix, "xor_b64", u64, (ATOMIC(u64, old ^ data)), 8),                                                 \
        MEMORY(prefix, "inc_u32", u32, atomic_inc<u32>, 4), MEMORY(prefix, "inc_u64", u64, atomic_inc<u64>, 8),       \
        MEMORY(prefix, "dec_u32", u32, atomic_dec<u32>, 4), MEMORY(prefix, "dec_u64", u64, atomic_dec<u64>, 8),       \
        MEMORY(prefix, "add_f32", u32, atomic_add_f32, 4), MEMORY(prefix, "min_f32", u32, atomic_min_f32, 4),         \
        MEMORY(prefix, "max_f32", u32, atomic_max_f32, 4)

#define LDS_ROW(name, T, F, value) \
    { name, "", bind_lds_atomic, nullptr, nullptr, nullptr, lds_atomic<T, F>, value }
#define LDS_BOTH(operation, type, T, F, value) \
    LDS_ROW("ds_" operation "_" type, T, F, value), LDS_ROW("ds_" operation "_rtn_" type, T, F, (value) | 0x200)

const Operation kOperations[] = {
    MEMORY_ATOMICS("global"),
    MEMORY_ATOMICS("flat"),
    // a subtraction that stops at 0
    MEMORY("global", "csub_u32", u32, (ATOMIC(u32, old < data ? 0 : old - data)), 4),
    LDS_BOTH("add", "u32", u32, (ATOMIC(u32, old + data)), 4),
    LDS_BOTH("add", "u64", u64, (ATOMIC(u64, old + data)), 8),
    LDS_BOTH("sub", "u32", u32, (ATOMIC(u32, old - data)), 4),
    LDS_BOTH("sub", "u64", u64, (ATOMIC(u64, old - data)), 8),
    LDS_BOTH("rsub", "u32", u32, (ATOMIC(u32, data - old)), 4),
    LDS_BOTH("inc", "u32", u32, atomic_inc<u32>, 4),
    LDS_BOTH("dec", "u32", u32, atomic_dec<u32>, 4),
    LDS_BOTH("min", "i32", u32, atomic_min_signed<u32>, 4),
    LDS_BOTH("max", "i32", u32, atomic_max_signed<u32>, 4),
    LDS_BOTH("min", "u32", u32, (ATOMIC(u32, std::min(old, data))), 4),
    LDS_BOTH("max", "u32", u32, (ATOMIC(u32, std::max(old, data))), 4),
    LDS_BOTH("min", "i64", u64, atomic_min_signed<u64>, 8),
    LDS_BOTH("max", "i64", u64, atomic_max_signed<u64>, 8),
    LDS_BOTH("min", "u64", u64, (ATOMIC(u64, std::min(old, data))), 8),
    LDS_BOTH("max", "u64", u64, (ATOMIC(u64, std::max(old, data))), 8),
    LDS_BOTH("and", "b32", u32, (ATOMIC(u32, old& data)), 4),
    LDS_BOTH("or", "b32", u32, (ATOMIC(u32, old | data)), 4),
    LDS_BOTH("xor", "b32", u32, (ATOMIC(u32, old ^ data)), 4),
    LDS_BOTH("and", "b64", u64, (ATOMIC(u64, old& data)), 8),
    LDS_BOTH("or", "b64", u64, (ATOMIC(u64, old | data)), 8),
    LDS_BOTH("xor", "b64", u64, (ATOMIC(u64, old ^ data)), 8),
    LDS_BOTH("add", "f32", u32, atomic_add_f32, 4),
    LDS_BOTH("min", "f32", u32, atomic_min_f32, 4),
    LDS_BOTH("max", "f32", u32, atomic_max_f32, 4),
    LDS_BOTH("cmpstore", "b32", u32, (ATOMIC(u32, old == compare ? data : old)), 4 | 0x100),
    LDS_BOTH("cmpstore", "b64", u64, (ATOMIC(u64, old == compare ? data : old)), 8 | 0x100),
    LDS_ROW("ds_storexchg_rtn_b32", u32, (ATOMIC(u32, data)), 4 | 0x200),
    LDS_ROW("ds_storexchg_rtn_b64", u64, (ATOMIC(u64, data)), 8 | 0x200),
};

}  // namespace

std::span<const Operation> atomic_operations() { return kOperations; }

}  // namespace onebit::emulator
