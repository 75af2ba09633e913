// Loads and stores of LDS, and the permutations that run through its crossbar.
#include <cstring>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/memory_access.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

u32 address_of(const Wave& wave, const Instruction& i, int lane) {
    return wave.v[i.source[0].index][lane] + static_cast<u32>(i.offset);
}

template <int Words>
void load_words(Wave& wave, const Instruction& i) {
    alignas(64) u32 addresses[kLanes];
    std::memcpy(addresses, wave.v[i.source[0].index], sizeof(addresses));
    u32(*out)[kLanes] = &wave.v[i.destination.index];
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 words[Words];
        const u32 address = addresses[lane] + static_cast<u32>(i.offset);
        std::memcpy(words, lds_pointer(wave, i, lane, address, 4 * Words, Access::load), sizeof(words));
        for (int k = 0; k < Words; ++k) out[k][lane] = words[k];
    }
}

template <int Bytes>
void load_small(Wave& wave, const Instruction& i) {
    u32* out = wave.v[i.destination.index];
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 value = 0;
        std::memcpy(&value, lds_pointer(wave, i, lane, address_of(wave, i, lane), Bytes, Access::load), Bytes);
        out[lane] = extend(value, Bytes, i.target, out[lane]);
    }
}

template <int Bytes>
void store_bytes(Wave& wave, const Instruction& i) {
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 words[(Bytes + 3) / 4];
        for (int k = 0; k < (Bytes + 3) / 4; ++k) words[k] = wave.v[i.source[1].index + k][lane];
        if ((i.target & kD16High) != 0) words[0] >>= 16;
        std::memcpy(lds_pointer(wave, i, lane, address_of(wave, i, lane), Bytes, Access::store), words, Bytes);
    }
}

// Two values of Words words at two offsets from one address.
template <int Words>
void load_two(Wave& wave, const Instruction& i) {
    alignas(64) u32 addresses[kLanes];
    std::memcpy(addresses, wave.v[i.source[0].index], sizeof(addresses));
    u32(*out)[kLanes] = &wave.v[i.destination.index];
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        u32 words[2 * Words];
        for (int k = 0; k < 2; ++k) {
            const u32 address = addresses[lane] + static_cast<u32>(k == 0 ? i.offset : i.offset1);
            std::memcpy(words + k * Words, lds_pointer(wave, i, lane, address, 4 * Words, Access::load), 4 * Words);
        }
        for (int k = 0; k < 2 * Words; ++k) out[k][lane] = words[k];
    }
}

template <int Words>
void store_two(Wave& wave, const Instruction& i) {
    for (u32 rest = wave.exec(); rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        for (int k = 0; k < 2; ++k) {
            const u32 address = wave.v[i.source[0].index][lane] + static_cast<u32>(k == 0 ? i.offset : i.offset1);
            u32 words[Words];
            for (int word = 0; word < Words; ++word) words[word] = wave.v[i.source[1 + k].index + word][lane];
            std::memcpy(lds_pointer(wave, i, lane, address, 4 * Words, Access::store), words, sizeof(words));
        }
    }
}

void require(const Wave& wave, const Instruction& i, u16 index, u32 lanes) {
    if (wave.checks != nullptr) wave.checks->require_lanes(wave, i, index, lanes);
}

// Lane that a lane reads under DS_SWIZZLE_B32's offset; -1 when the mode is not known.
int swizzle_source(u32 offset, int lane) {
    if ((offset & 0x8000) == 0)
        return static_cast<int>(((static_cast<u32>(lane) & (offset & 31)) | (offset >> 5 & 31)) ^ (offset >> 10 & 31));
    if ((offset & 0xff00) == 0x8000) return (lane & ~3) | static_cast<int>(offset >> 2 * (lane & 3) & 3);
    if ((offset & 0xf800) == 0xc000) {
        const int amount = static_cast<int>(offset >> 5 & 31);
        const int mask = static_cast<int>(offset & 31);
        const int moved = (offset >> 10 & 1) == 0 ? lane + amount : lane - amount;
        return (lane & mask) | (moved & ~mask & 31);
    }
    return -1;
}

void swizzle(Wave& wave, const Instruction& i) {
    alignas(64) u32 out[kLanes];
    const u32 exec = wave.exec();
    u32 read = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int from = swizzle_source(i.immediate, lane);
        const bool valid = (exec >> from & 1) != 0;
        out[lane] = valid ? wave.v[i.source[0].index][from] : 0;
        if (valid && (exec >> lane & 1) != 0) read |= 1u << from;
    }
    require(wave, i, i.source[0].index, read);
    store_lanes(wave, i.destination.index, out, exec);
}

// Each lane reads the lane that its address names; disabled lanes give 0.
void permute_backward(Wave& wave, const Instruction& i) {
    alignas(64) u32 out[kLanes];
    const u32 exec = wave.exec();
    u32 read = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        const u32 from = address_of(wave, i, lane) / 4 % kLanes;
        const bool valid = (exec >> from & 1) != 0;
        out[lane] = valid ? wave.v[i.source[1].index][from] : 0;
        if (valid && (exec >> lane & 1) != 0) read |= 1u << from;
    }
    require(wave, i, i.source[1].index, read);
    store_lanes(wave, i.destination.index, out, exec);
}

// Each lane sends to the lane that its address names; lanes that get nothing have 0.
void permute_forward(Wave& wave, const Instruction& i) {
    alignas(64) u32 out[kLanes] = {};
    const u32 exec = wave.exec();
    for (int lane = 0; lane < kLanes; ++lane)
        if ((exec >> lane & 1) != 0) out[address_of(wave, i, lane) / 4 % kLanes] = wave.v[i.source[1].index][lane];
    store_lanes(wave, i.destination.index, out, exec);
}

std::string bind_vgpr(BindContext& context, const AsmOperand& operand, u8 words, Operand& out,
                      bool checked_by_handler = false) {
    if (operand.kind != AsmOperand::Kind::vgpr || operand.words != words) return "operand " + operand.text;
    out = vector_register(operand.index, words);
    note_read(context, out, false, checked_by_handler);
    return {};
}

std::string bind_load(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != 2) return "operand count";
    if (auto unknown = unknown_modifier(context.text, {"offset"}); !unknown.empty()) return unknown;
    const u32 bytes = operation.value & 0xff;
    if (auto problem = bind_destination(context, operands[0], static_cast<u8>((bytes + 3) / 4), true, out.destination);
        !problem.empty())
        return problem;
    if (auto problem = bind_vgpr(context, operands[1], 1, out.source[0]); !problem.empty()) return problem;
    out.offset = offset_modifier(context.text);
    out.target = operation.value & ~0xffu;
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

std::string bind_store(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != 2) return "operand count";
    if (auto unknown = unknown_modifier(context.text, {"offset"}); !unknown.empty()) return unknown;
    const u32 bytes = operation.value & 0xff;
    if (auto problem = bind_vgpr(context, operands[0], 1, out.source[0]); !problem.empty()) return problem;
    if (auto problem = bind_vgpr(context, operands[1], static_cast<u8>((bytes + 3) / 4), out.source[1]);
        !problem.empty())
        return problem;
    out.offset = offset_modifier(context.text);
    out.target = operation.value & ~0xffu;
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

// value: bytes of one value, times the stride in the next byte.
std::string bind_two(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const bool load = context.text.mnemonic.starts_with("ds_load");
    if (operands.size() != (load ? 2u : 3u)) return "operand count";
    if (auto unknown = unknown_modifier(context.text, {"offset0", "offset1"}); !unknown.empty()) return unknown;
    const u32 bytes = operation.value & 0xff;
    const u8 words = static_cast<u8>(bytes / 4);
    if (load)
        if (auto problem = bind_destination(context, operands[0], 2 * words, true, out.destination); !problem.empty())
            return problem;
    if (auto problem = bind_vgpr(context, operands[load ? 1 : 0], 1, out.source[0]); !problem.empty()) return problem;
    for (int k = 0; !load && k < 2; ++k)
        if (auto problem = bind_vgpr(context, operands[1 + k], words, out.source[1 + k]); !problem.empty())
            return problem;
    const i32 unit = static_cast<i32>(bytes * (operation.value >> 8));
    out.offset = unit * offset_modifier(context.text, "offset0");
    out.offset1 = unit * offset_modifier(context.text, "offset1");
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

std::string bind_swizzle(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != 2 || context.decoded.immediates.empty()) return "operand count";
    if (auto problem = bind_destination(context, operands[0], 1, true, out.destination); !problem.empty())
        return problem;
    if (auto problem = bind_vgpr(context, operands[1], 1, out.source[0], true); !problem.empty()) return problem;
    out.immediate = static_cast<u16>(context.decoded.immediates.front());
    if (swizzle_source(out.immediate, 0) < 0) return "swizzle mode";
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

std::string bind_permute(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != 3) return "operand count";
    if (auto unknown = unknown_modifier(context.text, {"offset"}); !unknown.empty()) return unknown;
    if (auto problem = bind_destination(context, operands[0], 1, true, out.destination); !problem.empty())
        return problem;
    if (auto problem = bind_vgpr(context, operands[1], 1, out.source[0]); !problem.empty()) return problem;
    if (auto problem = bind_vgpr(context, operands[2], 1, out.source[1], operation.value == 1); !problem.empty())
        return problem;
    out.offset = offset_modifier(context.text);
    out.handler = operation.handler;
    context.details.counter = Counter::lds;
    return {};
}

#define LOAD(name, handler, value) \
    { name, "", bind_load, nullptr, nullptr, nullptr, handler, value }
#define STORE(name, handler, value) \
    { name, "", bind_store, nullptr, nullptr, nullptr, handler, value }
#define TWO(name, handler, bytes, stride) \
    { name, "", bind_two, nullptr, nullptr, nullptr, handler, (bytes) | (stride) << 8 }

const Operation kOperations[] = {
    LOAD("ds_load_u8", load_small<1>, 1),
    LOAD("ds_load_i8", load_small<1>, 1 | kSigned),
    LOAD("ds_load_u16", load_small<2>, 2),
    LOAD("ds_load_i16", load_small<2>, 2 | kSigned),
    LOAD("ds_load_u8_d16", load_small<1>, 1 | kD16),
    LOAD("ds_load_u8_d16_hi", load_small<1>, 1 | kD16High),
    LOAD("ds_load_i8_d16", load_small<1>, 1 | kSigned | kD16),
    LOAD("ds_load_i8_d16_hi", load_small<1>, 1 | kSigned | kD16High),
    LOAD("ds_load_u16_d16", load_small<2>, 2 | kD16),
    LOAD("ds_load_u16_d16_hi", load_small<2>, 2 | kD16High),
    LOAD("ds_load_b32", load_words<1>, 4),
    LOAD("ds_load_b64", load_words<2>, 8),
    LOAD("ds_load_b96", load_words<3>, 12),
    LOAD("ds_load_b128", load_words<4>, 16),
    STORE("ds_store_b8", store_bytes<1>, 1),
    STORE("ds_store_b16", store_bytes<2>, 2),
    STORE("ds_store_b8_d16_hi", store_bytes<1>, 1 | kD16High),
    STORE("ds_store_b16_d16_hi", store_bytes<2>, 2 | kD16High),
    STORE("ds_store_b32", store_bytes<4>, 4),
    STORE("ds_store_b64", store_bytes<8>, 8),
    STORE("ds_store_b96", store_bytes<12>, 12),
    STORE("ds_store_b128", store_bytes<16>, 16),
    TWO("ds_load_2addr_b32", load_two<1>, 4, 1),
    TWO("ds_load_2addr_b64", load_two<2>, 8, 1),
    TWO("ds_load_2addr_stride64_b32", load_two<1>, 4, 64),
    TWO("ds_load_2addr_stride64_b64", load_two<2>, 8, 64),
    TWO("ds_store_2addr_b32", store_two<1>, 4, 1),
    TWO("ds_store_2addr_b64", store_two<2>, 8, 1),
    TWO("ds_store_2addr_stride64_b32", store_two<1>, 4, 64),
    TWO("ds_store_2addr_stride64_b64", store_two<2>, 8, 64),
    {"ds_swizzle_b32", "", bind_swizzle, nullptr, nullptr, nullptr, swizzle},
    {"ds_bpermute_b32", "", bind_permute, nullptr, nullptr, nullptr, permute_backward, 1},
    {"ds_permute_b32", "", bind_permute, nullptr, nullptr, nullptr, permute_forward, 0},
};

}  // namespace

std::span<const Operation> lds_operations() { return kOperations; }

}  // namespace onebit::emulator
