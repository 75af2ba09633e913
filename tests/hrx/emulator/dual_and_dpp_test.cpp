// If this fails, dual-issue pairs or data-parallel permutations of emulated kernels are wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

float F(u32 x) { return as_f32(x); }
u32 U(float x) { return bits_of(x); }

// Each operation as the first and as the second half, beside a move. VOPD wants even and odd destinations.
void dual() {
    struct Row {
        const char* name;
        const char* operands;  // behind the destination
        u32 (*formula)(u32 a, u32 b, u32 old);
    };
    const Row rows[] = {
        {"fmac_f32", "A, B", [](u32 a, u32 b, u32 old) { return U(std::fma(F(a), F(b), F(old))); }},
        {"fmaak_f32", "A, B, 0x40490fdb", [](u32 a, u32 b, u32) { return U(std::fma(F(a), F(b), F(0x40490fdb))); }},
        {"fmamk_f32", "A, 0x40490fdb, B", [](u32 a, u32 b, u32) { return U(std::fma(F(a), F(0x40490fdb), F(b))); }},
        {"mul_f32", "A, B", [](u32 a, u32 b, u32) { return U(F(a) * F(b)); }},
        {"add_f32", "A, B", [](u32 a, u32 b, u32) { return U(F(a) + F(b)); }},
        {"sub_f32", "A, B", [](u32 a, u32 b, u32) { return U(F(a) - F(b)); }},
        {"subrev_f32", "A, B", [](u32 a, u32 b, u32) { return U(F(b) - F(a)); }},
        {"mul_dx9_zero_f32", "A, B", [](u32 a, u32 b, u32) { return F(a) == 0 || F(b) == 0 ? 0 : U(F(a) * F(b)); }},
        {"mov_b32", "A", [](u32 a, u32, u32) { return a; }},
        {"cndmask_b32", "A, B", [](u32 a, u32 b, u32) { return b == 0x40400000 ? b : a; }},
        {"max_f32", "A, B", [](u32 a, u32 b, u32) { return F(a) > F(b) ? a : b; }},
        {"min_f32", "A, B", [](u32 a, u32 b, u32) { return F(a) < F(b) ? a : b; }},
        {"dot2acc_f32_f16", "A, B",
         [](u32 a, u32 b, u32 old) {
             double sum = static_cast<double>(F(old));
             for (int k = 0; k < 2; ++k)
                 sum += static_cast<double>(as_f16(a >> 16 * k)) * static_cast<double>(as_f16(b >> 16 * k));
             return U(static_cast<float>(sum));
         }},
    };
    for (const Row& row : rows)
        for (bool first : {true, false}) {
            auto named = [](std::string text, const char* a, const char* b) {
                text.replace(text.find('A'), 1, a);
                if (auto at = text.find('B'); at != std::string::npos) text.replace(at, 1, b);
                return text;
            };
            const std::string mine = "v_dual_" + std::string(row.name) + (first ? " v0, " : " v1, ") +
                                     (first ? named(row.operands, "v4", "v5") : named(row.operands, "v6", "v7"));
            // the move reads what the other half writes, and must see the old value
            const std::string other = first ? "v_dual_mov_b32 v1, v11" : "v_dual_mov_b32 v0, v1";
            const u32 a = 0x3fc00000;
            const u32 b = 0x40400000;
            Machine machine;
            machine.v(0, U(8.0f)).v(1, U(16.0f)).v(4, a).v(5, b).v(6, a).v(7, b).v(11, 77u).s(kVcc, kAllLanes);
            machine.ok(first ? mine + " :: " + other : other + " :: " + mine);
            const u32 old = first ? U(8.0f) : U(16.0f);
            EXPECT_EQ(machine.get_v(first ? 0 : 1, 13), row.formula(a, b, old)) << row.name << first;
            EXPECT_EQ(machine.get_v(first ? 1 : 0, 13), first ? 77u : U(16.0f)) << row.name << first;
        }
    // second halves have three operations more
    struct Integer {
        const char* name;
        u32 wanted;
    };
    for (const Integer& row : {Integer{"add_nc_u32", 12}, Integer{"lshlrev_b32", 7u << 5}, Integer{"and_b32", 5}}) {
        Machine machine;
        machine.v(0, 1u).v(4, 3u).v(6, 5u).v(7, 7u).exec(0x10);
        machine.v(1, 9u).ok("v_dual_mov_b32 v0, v4 :: v_dual_" + std::string(row.name) + " v1, v6, v7");
        EXPECT_EQ(machine.get_v(0, 4), 3u);
        EXPECT_EQ(machine.get_v(1, 4), row.wanted) << row.name;
        EXPECT_EQ(machine.get_v(1, 5), 9u) << row.name;
    }
}

// The lane that lane `lane` reads; -1: none, outside of the row.
void dpp() {
    struct Control {
        const char* text;
        int (*source)(int lane);
    };
    auto tagged = [](int lane) { return 100 + static_cast<u32>(lane); };
    for (const Control& control :
         {Control{"quad_perm:[3,0,2,1]",
                  [](int lane) {
                      return (lane & ~3) | (const int[]){3, 0, 2, 1}[lane & 3];
                  }},
          Control{"row_shl:3", [](int lane) { return (lane & 15) + 3 < 16 ? lane + 3 : -1; }},
          Control{"row_shr:1", [](int lane) { return (lane & 15) >= 1 ? lane - 1 : -1; }},
          Control{"row_ror:5", [](int lane) { return (lane & 16) | (((lane & 15) + 11) % 16); }},
          Control{"row_mirror", [](int lane) { return (lane & 16) | (15 - (lane & 15)); }},
          Control{"row_half_mirror", [](int lane) { return (lane & 24) | (7 - (lane & 7)); }},
          Control{"row_share:6", [](int lane) { return (lane & 16) | 6; }},
          Control{"row_xmask:9", [](int lane) { return lane ^ 9; }}}) {
        const std::string text = std::string("v_mov_b32_dpp v0, v1 ") + control.text + " row_mask:0xf bank_mask:0xf";
        for (bool bound : {false, true}) {
            const u32 exec = 0xfffffeff;  // lane 8 is off
            Machine machine;
            machine.v(0, 7u).v(1, tagged).exec(exec).ok(text + (bound ? " bound_ctrl:1" : ""));
            for (int lane = 0; lane < kLanes; ++lane) {
                const int from = control.source(lane);
                const bool valid = from >= 0 && from != 8;
                const u32 wanted = lane == 8 ? 7 : valid ? tagged(from) : bound ? 0 : 7;
                EXPECT_EQ(machine.get_v(0, lane), wanted) << text << " lane " << lane;
            }
        }
    }
    Machine masked;
    masked.v(0, 7u).v(1, tagged).ok("v_mov_b32_dpp v0, v1 row_share:0 row_mask:0x1 bank_mask:0x6");
    for (int lane = 0; lane < kLanes; ++lane)
        EXPECT_EQ(masked.get_v(0, lane), lane < 16 && lane >= 4 && lane < 12 ? 100u : 7u) << lane;
    Machine inactive;
    inactive.v(0, 7u).v(1, tagged).exec(2).ok("v_mov_b32_dpp v0, v1 row_share:0 row_mask:0xf bank_mask:0xf fi:1");
    EXPECT_EQ(inactive.get_v(0, 1), 100u);
    Machine eight;
    eight.v(0, 7u).v(1, tagged).ok("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]");
    for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(eight.get_v(0, lane), tagged((lane & 24) | (7 - (lane & 7))));
    // only the first source moves; a sum of neighbours
    Machine sum;
    auto number = [](int lane) { return U(static_cast<float>(lane)); };
    sum.v(1, number).ok("v_add_f32_dpp v0, v1, v1 row_xmask:1 row_mask:0xf bank_mask:0xf");
    for (int lane = 0; lane < kLanes; ++lane) EXPECT_EQ(sum.get_v(0, lane), U(static_cast<float>((lane ^ 1) + lane)));
    Machine three;
    three.v(1, number).v(2, U(2.0f)).ok("v_fma_f32_e64_dpp v0, v1, v2, v1 row_xmask:2 row_mask:0xf bank_mask:0xf");
    for (int lane = 0; lane < kLanes; ++lane)
        EXPECT_EQ(three.get_v(0, lane), U(static_cast<float>((lane ^ 2) * 2 + lane)));
}

}  // namespace

void dual_and_dpp_cases() {
    dual();
    dpp();
}

TEST(Dual, EveryOperationInBothHalves) { dual(); }
TEST(Dpp, EveryControl) { dpp(); }

}  // namespace onebit::emulator
