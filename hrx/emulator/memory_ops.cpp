// Loads and stores of global, flat and scratch memory.
#include <cstring>

#include "hrx/emulator/memory_access.h"
#include "hrx/emulator/trap.h"

namespace onebit::emulator {
namespace {

u8* pointer(Wave& wave, const Instruction& i, int lane, u64 address, u32 bytes, Access access) {
    switch (static_cast<Segment>(i.immediate)) {
        case Segment::global:
            return global_pointer(wave, i, lane, address, bytes, access);
        case Segment::flat:
            return flat_pointer(wave, i, lane, address, bytes, access);
        default:
            return scratch_pointer(wave, i, lane, static_cast<u32>(address), bytes);
    }
}

// Whether the lanes may be read without a look at each.
bool all_inside(Wave& wave, const Instruction& i, const u64* addresses, u32 exec, u32 bytes, bool write) {
    return static_cast<Segment>(i.immediate) != Segment::scratch &&
           wave.group->memory->all_inside(addresses, exec, bytes, write);
}

template <int Words>
void load_words(Wave& wave, const Instruction& i) {
    alignas(64) u64 addresses[kLanes];
    lane_addresses(wave, i, addresses);
    const u32 exec = wave.exec();
    u32(*out)[kLanes] = &wave.v[i.destination.index];
    if (exec == kAllLanes && all_inside(wave, i, addresses, exec, 4 * Words, false)) {
        for (int lane = 0; lane < kLanes; ++lane) {
            u32 words[Words];
            std::memcpy(words, reinterpret_cast<const u8*>(addresses[lane]), sizeof(words));
            for (int k = 0; k < Words; ++k) out[k][lane] = words[k];
        }
        return;
    }
    for (u32 rest = exec; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 words[Words];
        std::memcpy(words, pointer(wave, i, lane, addresses[lane], 4 * Words, Access::load), sizeof(words));
        for (int k = 0; k < Words; ++k) out[k][lane] = words[k];
    }
}

// One or two bytes; i.target holds the format.
template <int Bytes>
void load_small(Wave& wave, const Instruction& i) {
    alignas(64) u64 addresses[kLanes];
    lane_addresses(wave, i, addresses);
    const u32 exec = wave.exec();
    u32* out = wave.v[i.destination.index];
    const bool inside = all_inside(wave, i, addresses, exec, Bytes, false);
    for (u32 rest = exec; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 value = 0;
        const u8* from = inside ? reinterpret_cast<const u8*>(addresses[lane])
                                : pointer(wave, i, lane, addresses[lane], Bytes, Access::load);
        std::memcpy(&value, from, Bytes);
        out[lane] = extend(value, Bytes, i.target, out[lane]);
    }
}

template <int Bytes>
void store_bytes(Wave& wave, const Instruction& i) {
    alignas(64) u64 addresses[kLanes];
    lane_addresses(wave, i, addresses);
    const u32 exec = wave.exec();
    const bool inside = all_inside(wave, i, addresses, exec, Bytes, true);
    for (u32 rest = exec; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u8* to = inside ? reinterpret_cast<u8*>(addresses[lane])
                        : pointer(wave, i, lane, addresses[lane], Bytes, Access::store);
        u32 words[(Bytes + 3) / 4];
        for (int k = 0; k < (Bytes + 3) / 4; ++k) words[k] = wave.v[i.source[1].index + k][lane];
        if ((i.target & kD16High) != 0) words[0] >>= 16;
        std::memcpy(to, words, Bytes);
    }
}

Segment segment_of(const std::string& mnemonic) {
    return mnemonic.starts_with("flat")      ? Segment::flat
           : mnemonic.starts_with("scratch") ? Segment::scratch
                                             : Segment::global;
}

std::string known_modifiers(const AsmInstruction& text) {
    return unknown_modifier(text, {"offset", "glc", "slc", "dlc"});
}

std::string bind_load(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const Segment segment = segment_of(context.text.mnemonic);
    if (operands.size() < 2) return "operand count";
    if (auto unknown = known_modifiers(context.text); !unknown.empty()) return unknown;
    const u32 bytes = operation.value & 0xff;
    if (auto problem = bind_destination(context, operands[0], static_cast<u8>((bytes + 3) / 4), true, out.destination);
        !problem.empty())
        return problem;
    if (auto problem = bind_address(context, segment, operands[1], operands.size() > 2 ? &operands[2] : nullptr);
        !problem.empty())
        return problem;
    out.bytes = static_cast<u8>(bytes);
    out.target = operation.value & ~0xffu;
    out.handler = operation.handler;
    context.details.counter = segment == Segment::flat ? Counter::flat_load : Counter::vector_load;
    return {};
}

std::string bind_store(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const Segment segment = segment_of(context.text.mnemonic);
    if (operands.size() < 2) return "operand count";
    if (auto unknown = known_modifiers(context.text); !unknown.empty()) return unknown;
    const u32 bytes = operation.value & 0xff;
    if (auto problem = bind_address(context, segment, operands[0], operands.size() > 2 ? &operands[2] : nullptr);
        !problem.empty())
        return problem;
    const u8 words = static_cast<u8>((bytes + 3) / 4);
    if (operands[1].kind != AsmOperand::Kind::vgpr || operands[1].words != words) return "data " + operands[1].text;
    out.source[1] = vector_register(operands[1].index, words);
    note_read(context, out.source[1]);
    out.bytes = static_cast<u8>(bytes);
    out.target = operation.value & ~0xffu;
    out.handler = operation.handler;
    context.details.counter = segment == Segment::flat ? Counter::flat_store : Counter::vector_store;
    return {};
}

#define LOAD(name, handler, value) \
    { name, "", bind_load, nullptr, nullptr, nullptr, handler, value }
#define STORE(name, handler, value) \
    { name, "", bind_store, nullptr, nullptr, nullptr, handler, value }
#define SEGMENT(prefix)                                                                                                \
    LOAD(prefix "_load_u8", load_small<1>, 1), LOAD(prefix "_load_i8", load_small<1>, 1 | kSigned),                    \
        LOAD(prefix "_load_u16", load_small<2>, 2), LOAD(prefix "_load_i16", load_small<2>, 2 | kSigned),              \
        LOAD(prefix "_load_d16_u8", load_small<1>, 1 | kD16),                                                          \
        LOAD(prefix "_load_d16_i8", load_small<1>, 1 | kSigned | kD16),                                                \
        LOAD(prefix "_load_d16_b16", load_small<2>, 2 | kD16),                                                         \
        LOAD(prefix "_load_d16_hi_u8", load_small<1>, 1 | kD16High),                                                   \
        LOAD(prefix "_load_d16_hi_i8", load_small<1>, 1 | kSigned | kD16High),                                         \
        LOAD(prefix "_load_d16_hi_b16", load_small<2>, 2 | kD16High), LOAD(prefix "_load_b32", load_words<1>, 4),      \
        LOAD(prefix "_load_b64", load_words<2>, 8), LOAD(prefix "_load_b96", load_words<3>, 12),                       \
        LOAD(prefix "_load_b128", load_words<4>, 16), STORE(prefix "_store_b8", store_bytes<1>, 1),                    \
        STORE(prefix "_store_b16", store_bytes<2>, 2), STORE(prefix "_store_d16_hi_b8", store_bytes<1>, 1 | kD16High), \
        STORE(prefix "_store_d16_hi_b16", store_bytes<2>, 2 | kD16High),                                               \
        STORE(prefix "_store_b32", store_bytes<4>, 4), STORE(prefix "_store_b64", store_bytes<8>, 8),                  \
        STORE(prefix "_store_b96", store_bytes<12>, 12), STORE(prefix "_store_b128", store_bytes<16>, 16)

const Operation kOperations[] = {SEGMENT("global"), SEGMENT("flat"), SEGMENT("scratch")};

}  // namespace

std::span<const Operation> memory_operations() { return kOperations; }

}  // namespace onebit::emulator
