// If this fails, emulated kernels take wrong branches, or run on where they must stop.
#include <gtest/gtest.h>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

// s0 tells whether the branch was taken.
bool taken(const std::string& branch, const std::function<void(Machine&)>& prepare) {
    Machine machine;
    prepare(machine);
    machine.ok("s_mov_b32 s0, 1\n" + branch + " away\ns_mov_b32 s0, 0\naway:");
    return machine.get_s(0) == 1;
}

void branches() {
    auto scc = [](bool value) { return [=](Machine& m) { m.set_scc(value); }; };
    auto vcc = [](u32 value) { return [=](Machine& m) { m.s(kVcc, value); }; };
    auto exec = [](u32 value) { return [=](Machine& m) { m.exec(value); }; };
    EXPECT_TRUE(taken("s_branch", scc(false)));
    EXPECT_TRUE(taken("s_cbranch_scc0", scc(false)));
    EXPECT_FALSE(taken("s_cbranch_scc0", scc(true)));
    EXPECT_TRUE(taken("s_cbranch_scc1", scc(true)));
    EXPECT_FALSE(taken("s_cbranch_scc1", scc(false)));
    EXPECT_TRUE(taken("s_cbranch_vccz", vcc(0)));
    EXPECT_FALSE(taken("s_cbranch_vccz", vcc(8)));
    EXPECT_TRUE(taken("s_cbranch_vccnz", vcc(8)));
    EXPECT_FALSE(taken("s_cbranch_vccnz", vcc(0)));
    EXPECT_TRUE(taken("s_cbranch_execz", exec(0)));
    EXPECT_FALSE(taken("s_cbranch_execz", exec(1)));
    EXPECT_TRUE(taken("s_cbranch_execnz", exec(1)));
    EXPECT_FALSE(taken("s_cbranch_execnz", exec(0)));
    // a loop: backward branches
    Machine loop;
    loop.ok("s_mov_b32 s0, 0\nagain:\ns_add_u32 s0, s0, 1\ns_cmp_lt_u32 s0, 1000\ns_cbranch_scc1 again");
    EXPECT_EQ(loop.get_s(0), 1000u);
}

void calls() {
    Machine call;
    call.ok(R"(
        s_mov_b32 s0, 0
        s_call_b64 s[4:5], function
        s_add_u32 s0, s0, 16
        s_branch done
        function:
        s_add_u32 s0, s0, 1
        s_setpc_b64 s[4:5]
        done:)");
    EXPECT_EQ(call.get_s(0), 17u);
    Machine swap;
    swap.ok(R"(
        s_mov_b32 s0, 0
        s_getpc_b64 s[2:3]
        here:
        s_add_u32 s2, s2, function-here
        s_addc_u32 s3, s3, 0
        s_swappc_b64 s[4:5], s[2:3]
        s_add_u32 s0, s0, 16
        s_branch done
        function:
        s_add_u32 s0, s0, 1
        s_setpc_b64 s[4:5]
        done:)");
    EXPECT_EQ(swap.get_s(0), 17u);
    Machine wild;
    auto trap = wild.s64(2, 0x10002).run("s_setpc_b64 s[2:3]");
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::bad_state);
}

// Change nothing but what is in flight.
void hints() {
    Machine machine;
    machine.ok(R"(
        s_nop 3
        s_clause 1
        s_delay_alu instid0(VALU_DEP_1)
        s_sleep 2
        s_setprio 1
        s_set_inst_prefetch_distance 1
        s_icache_inv
        s_dcache_inv
        s_gl1_inv
        s_version 1
        buffer_gl0_inv
        buffer_gl1_inv
        s_waitcnt vmcnt(0) lgkmcnt(0)
        s_waitcnt_depctr 0xfffe
        s_waitcnt_vscnt null, 0
        s_waitcnt_vmcnt null, 0
        s_waitcnt_lgkmcnt null, 0
        s_waitcnt_expcnt null, 0
        s_wait_idle
        s_denorm_mode 15
        s_round_mode 0
        s_barrier
        s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
        s_endpgm)");
    Machine clock;
    clock.ok(
        "s_sendmsg_rtn_b64 s[0:1], sendmsg(MSG_RTN_GET_REALTIME)\ns_sendmsg_rtn_b64 s[2:3], "
        "sendmsg(MSG_RTN_GET_REALTIME)\ns_waitcnt lgkmcnt(0)");
    EXPECT_GT(clock.get_s64(0), 0u);
    EXPECT_GE(clock.get_s64(2), clock.get_s64(0));
    Machine padding;
    auto trap = padding.run("s_branch away\ns_endpgm\naway:\ns_code_end");
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::bad_state);
    Machine asked;
    trap = asked.run("s_trap 2");
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::bad_state);
    EXPECT_NE(trap->detail.find("trap 2"), std::string::npos);
}

}  // namespace

void control_cases() {
    branches();
    calls();
    hints();
}

TEST(Control, Branches) { branches(); }
TEST(Control, Calls) { calls(); }
TEST(Control, Hints) { hints(); }

TEST(Control, UnknownIsNamedAndNeverSkipped) {
    struct Unknown {
        const char* text;
        const char* named;
    };
    for (const Unknown& unknown :
         {Unknown{"v_cvt_pk_u8_f32 v0, v1, v2, v3\ns_sendmsg 1", "message"}, Unknown{"s_denorm_mode 0", "mode"},
          Unknown{"v_cubeid_f32 v0, v1, v2, v3", "v_cubeid_f32"},
          Unknown{"v_mad_u32_u24 v0, v1, v2, v3 clamp", "clamp"},
          Unknown{"buffer_load_b32 v0, v1, s[4:7], 0 offen", "buffer_load_b32"},
          Unknown{"s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0", "s_setreg"}}) {
        Machine machine;
        auto trap = machine.v(1, 0u).v(2, 0u).v(3, 0u).run(unknown.text);
        ASSERT_TRUE(trap) << unknown.text;
        EXPECT_EQ(trap->kind, TrapKind::unknown_instruction) << trap->message();
        EXPECT_NE(trap->message().find(unknown.named), std::string::npos) << trap->message();
        EXPECT_NE(trap->message().find(" at 0x"), std::string::npos) << trap->message();
    }
}

TEST(Control, BytesThatAreNoInstructionTrap) {
    Machine machine;
    auto trap = machine.run(".long 0xffffffff");
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::unknown_instruction);
}

}  // namespace onebit::emulator
