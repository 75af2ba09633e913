// If this fails, values that cross lanes (reductions, broadcasts) arrive in wrong lanes.
#include <gtest/gtest.h>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

u32 tagged(int lane) { return 100 + static_cast<u32>(lane); }

void reads() {
    Machine machine;
    machine.v(1, tagged).s(4, 37).exec(0xfffffff0);
    machine.ok("v_readlane_b32 s0, v1, 3\nv_readlane_b32 s1, v1, s4\nv_readfirstlane_b32 s2, v1");
    EXPECT_EQ(machine.get_s(0), 103u);
    EXPECT_EQ(machine.get_s(1), 105u);  // the number of a lane counts modulo 32
    EXPECT_EQ(machine.get_s(2), 104u);
    machine.exec(0).ok("v_readfirstlane_b32 s2, v1");
    EXPECT_EQ(machine.get_s(2), 100u);  // with no lane enabled, lane 0
    Machine write;
    write.v(1, tagged).s(4, 9).exec(1).ok("v_writelane_b32 v1, s4, 7");
    EXPECT_EQ(write.get_v(1, 7), 9u);
    EXPECT_EQ(write.get_v(1, 8), 108u);
}

void permutes() {
    // selectors count down: 15, 14, ... 0
    auto reversed = [](int lane, bool other_row) {
        return tagged(((lane & 16) ^ (other_row ? 16 : 0)) | (15 - (lane & 15)));
    };
    for (bool other : {false, true}) {
        const std::string name = other ? "v_permlanex16_b32" : "v_permlane16_b32";
        Machine machine;
        machine.v(0, 7u).v(1, tagged).s(4, 0x89abcdef).s(5, 0x01234567).ok(name + " v0, v1, s4, s5");
        for (int lane = 0; lane < kLanes; ++lane)
            EXPECT_EQ(machine.get_v(0, lane), reversed(lane, other)) << name << lane;
        // lane 0 is off: who reads it keeps its value, gets 0 with bound_ctrl, or reads it anyway with fi
        Machine keep;
        keep.v(0, 7u).v(1, tagged).s(4, 0x89abcdef).s(5, 0x01234567).exec(~1u).ok(name + " v0, v1, s4, s5");
        EXPECT_EQ(keep.get_v(0, other ? 31 : 15), 7u);
        Machine zero;
        zero.v(0, 7u)
            .v(1, tagged)
            .s(4, 0x89abcdef)
            .s(5, 0x01234567)
            .exec(~1u)
            .ok(name + " v0, v1, s4, s5 op_sel:[0,1]");
        EXPECT_EQ(zero.get_v(0, other ? 31 : 15), 0u);
        Machine fetch;
        fetch.v(0, 7u)
            .v(1, tagged)
            .s(4, 0x89abcdef)
            .s(5, 0x01234567)
            .exec(~1u)
            .ok(name + " v0, v1, s4, s5 op_sel:[1,0]");
        EXPECT_EQ(fetch.get_v(0, other ? 31 : 15), 100u);
    }
    Machine halves;
    halves.v(0, 7u).v(1, tagged).ok("v_permlane64_b32 v0, v1");
    EXPECT_EQ(halves.get_v(0, 5), 105u);
}

void counts() {
    Machine machine;
    machine.v(2, 1000u).ok("v_mbcnt_lo_u32_b32 v0, 0x0f0f0f0f, v2\nv_mbcnt_hi_u32_b32 v1, -1, v2");
    for (int lane = 0; lane < kLanes; ++lane) {
        u32 below = 0;
        for (int k = 0; k < lane; ++k) below += 0x0f0f0f0fu >> k & 1;
        EXPECT_EQ(machine.get_v(0, lane), 1000 + below);
        EXPECT_EQ(machine.get_v(1, lane), 1000u);
    }
}

}  // namespace

void lane_cases() {
    reads();
    permutes();
    counts();
}

TEST(Lanes, Reads) { reads(); }
TEST(Lanes, Permutes) { permutes(); }
TEST(Lanes, Counts) { counts(); }

}  // namespace onebit::emulator
