// If this fails, emulated kernels lose or mix up data in LDS.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

constexpr const char* kWait = "\ns_waitcnt lgkmcnt(0)";
u32 word(const std::vector<u8>& bytes, u32 at) {
    u32 value = 0;
    std::memcpy(&value, &bytes[at], 4);
    return value;
}
struct PatternMachine : Machine {
    PatternMachine() {
        lds(8192);
        for (u32 k = 0; k < 8192; ++k) lds_bytes()[k] = static_cast<u8>(k * 7 + 3);
    }
};
u8 pattern(u32 at) { return static_cast<u8>(at * 7 + 3); }
u32 pattern_word(u32 at) {
    return pattern(at) | pattern(at + 1) << 8 | pattern(at + 2) << 16 | static_cast<u32>(pattern(at + 3)) << 24;
}

void loads() {
    auto address = [](int lane) { return 16 * static_cast<u32>(lane); };
    for (const auto& [name, words] : {std::pair{"b32", 1}, {"b64", 2}, {"b96", 3}, {"b128", 4}}) {
        PatternMachine machine;
        machine.v(8, address).exec(~2u);
        machine.ok(std::string("ds_load_") + name + " v[0:" + std::to_string(words - 1) + "], v8 offset:64" + kWait);
        for (int lane : {0, 2, 31})
            for (int k = 0; k < words; ++k)
                EXPECT_EQ(machine.get_v(static_cast<u16>(k), lane),
                          pattern_word(address(lane) + 64 + 4 * static_cast<u32>(k)))
                    << name;
        EXPECT_EQ(machine.get_v(0, 1), 0xdeadbeefu);
    }
    struct Small {
        const char* name;
        u32 (*expected)(u32 at, u32 old);
    };
    for (const Small& row :
         {Small{"ds_load_u8", [](u32 at, u32) { return u32{pattern(at)}; }},
          Small{"ds_load_i8", [](u32 at, u32) { return static_cast<u32>(static_cast<i8>(pattern(at))); }},
          Small{"ds_load_u16", [](u32 at, u32) { return pattern_word(at) & 0xffff; }},
          Small{"ds_load_i16", [](u32 at, u32) { return static_cast<u32>(static_cast<i16>(pattern_word(at))); }},
          Small{"ds_load_u8_d16", [](u32 at, u32 old) { return (old & 0xffff0000u) | pattern(at); }},
          Small{"ds_load_u8_d16_hi",
                [](u32 at, u32 old) { return (old & 0xffff) | static_cast<u32>(pattern(at)) << 16; }},
          Small{"ds_load_i8_d16",
                [](u32 at, u32 old) {
                    return (old & 0xffff0000u) | (static_cast<u32>(static_cast<i8>(pattern(at))) & 0xffff);
                }},
          Small{"ds_load_i8_d16_hi",
                [](u32 at, u32 old) { return (old & 0xffff) | static_cast<u32>(static_cast<i8>(pattern(at))) << 16; }},
          Small{"ds_load_u16_d16", [](u32 at, u32 old) { return (old & 0xffff0000u) | (pattern_word(at) & 0xffff); }},
          Small{"ds_load_u16_d16_hi", [](u32 at, u32 old) { return (old & 0xffff) | pattern_word(at) << 16; }}}) {
        PatternMachine machine;
        machine.v(0, 0x11112222u).v(8, address).ok(std::string(row.name) + " v0, v8 offset:6" + kWait);
        for (int lane = 0; lane < kLanes; ++lane)
            EXPECT_EQ(machine.get_v(0, lane), row.expected(address(lane) + 6, 0x11112222)) << row.name << lane;
    }
    struct Two {
        const char* name;
        u32 unit;
        int words;
    };
    for (const Two& row : {Two{"ds_load_2addr_b32", 4, 1}, Two{"ds_load_2addr_b64", 8, 2},
                           Two{"ds_load_2addr_stride64_b32", 256, 1}, Two{"ds_load_2addr_stride64_b64", 512, 2}}) {
        PatternMachine machine;
        machine.v(8, [](int lane) { return 8 * static_cast<u32>(lane); });
        machine.ok(std::string(row.name) + " v[0:" + std::to_string(2 * row.words - 1) + "], v8 offset0:1 offset1:5" +
                   kWait);
        for (int k = 0; k < 2 * row.words; ++k) {
            const u32 at = 8 * 3 + row.unit * (k < row.words ? 1 : 5) + 4 * static_cast<u32>(k % row.words);
            EXPECT_EQ(machine.get_v(static_cast<u16>(k), 3), pattern_word(at)) << row.name;
        }
    }
}

void stores() {
    auto address = [](int lane) { return 16 * static_cast<u32>(lane); };
    auto data = [](int k) {
        return [=](int lane) { return 0x01020304u * static_cast<u32>(lane + 1) + static_cast<u32>(k); };
    };
    for (const auto& [name, bytes] :
         {std::pair{"b8", 1}, {"b16", 2}, {"b32", 4}, {"b64", 8}, {"b96", 12}, {"b128", 16}}) {
        Machine machine;
        machine.lds(1024).v(8, address).exec(~4u);
        for (int k = 0; k < 4; ++k) machine.v(static_cast<u16>(k), data(k));
        const int words = (bytes + 3) / 4;
        machine.ok(std::string("ds_store_") + name + " v8, v[0:" + std::to_string(words - 1) + "] offset:32" + kWait);
        for (int lane = 0; lane < kLanes; ++lane)
            for (int k = 0; k < 16; ++k) {
                const u8 wanted = lane == 2 || k >= bytes ? 0 : static_cast<u8>(data(k / 4)(lane) >> 8 * (k % 4));
                EXPECT_EQ(machine.lds_bytes()[address(lane) + 32 + static_cast<u32>(k)], wanted) << name << lane;
            }
    }
    Machine high;
    high.lds(64)
        .v(8, 0u)
        .v(0, 0x11223344u)
        .exec(1)
        .ok(std::string("ds_store_b8_d16_hi v8, v0\nds_store_b16_d16_hi v8, v0 offset:4") + kWait);
    EXPECT_EQ(word(high.lds_bytes(), 0), 0x22u);
    EXPECT_EQ(word(high.lds_bytes(), 4), 0x1122u);
    struct Two {
        const char* name;
        u32 unit;
        int words;
    };
    for (const Two& row : {Two{"ds_store_2addr_b32", 4, 1}, Two{"ds_store_2addr_b64", 8, 2},
                           Two{"ds_store_2addr_stride64_b32", 256, 1}, Two{"ds_store_2addr_stride64_b64", 512, 2}}) {
        Machine machine;
        machine.lds(8192).v(8, 16u).exec(1).v(0, 1u).v(1, 2u).v(2, 3u).v(3, 4u);
        machine.ok(std::string(row.name) + (row.words == 1 ? " v8, v0, v2" : " v8, v[0:1], v[2:3]") +
                   " offset0:0 offset1:3" + kWait);
        EXPECT_EQ(word(machine.lds_bytes(), 16), 1u) << row.name;
        EXPECT_EQ(word(machine.lds_bytes(), 16 + 3 * row.unit), 3u) << row.name;
        if (row.words == 2) {
            EXPECT_EQ(word(machine.lds_bytes(), 20 + 3 * row.unit), 4u) << row.name;
        }
    }
}

void permutes() {
    auto tagged = [](int lane) { return 100 + static_cast<u32>(lane); };
    Machine swap;
    swap.v(1, tagged).ok(std::string("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)") + kWait);
    Machine broadcast;
    broadcast.v(1, tagged).ok(std::string("ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)") + kWait);
    Machine quad;
    quad.v(1, tagged).ok(std::string("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,1,0,3,2)") + kWait);
    Machine backward;
    backward.v(1, tagged).v(2, [](int lane) { return 4 * static_cast<u32>((lane + 5) % 32); }).exec(~32u);
    backward.v(0, 7u).ok(std::string("ds_bpermute_b32 v0, v2, v1 offset:4") + kWait);
    Machine forward;
    forward.v(1, tagged).v(2, [](int lane) { return 4 * static_cast<u32>((lane + 5) % 32); }).exec(~1u);
    forward.v(0, 7u).ok(std::string("ds_permute_b32 v0, v2, v1") + kWait);
    for (int lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(swap.get_v(0, lane), tagged(lane ^ 16));
        EXPECT_EQ(broadcast.get_v(0, lane), tagged((lane & 24) | 3));
        EXPECT_EQ(quad.get_v(0, lane), tagged(lane ^ 1));
        const int from = (lane + 6) % 32;
        EXPECT_EQ(backward.get_v(0, lane), lane == 5 ? 7 : from == 5 ? 0 : tagged(from)) << lane;
        const int sender = (lane + 27) % 32;
        EXPECT_EQ(forward.get_v(0, lane), lane == 0 ? 7 : sender == 0 ? 0 : tagged(sender)) << lane;
    }
}

}  // namespace

void lds_cases() {
    loads();
    stores();
    permutes();
}

TEST(Lds, Loads) { loads(); }
TEST(Lds, Stores) { stores(); }
TEST(Lds, Permutes) { permutes(); }

TEST(Lds, EdgesOfTheSegment) {
    for (u32 at : {0u, 60u, 61u, 64u, 0xfffffffcu}) {
        Machine machine;
        auto trap = machine.lds(64).v(1, at).run("ds_load_b32 v0, v1\ns_waitcnt lgkmcnt(0)");
        EXPECT_EQ(trap.has_value(), at > 60) << at;
        if (trap) {
            EXPECT_EQ(trap->kind, TrapKind::out_of_bounds);
        }
    }
}

}  // namespace onebit::emulator
