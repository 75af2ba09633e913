// If this fails, mistakes that real hardware answers with wrong numbers pass the emulator unseen (or good code is
// refused).
#include <gtest/gtest.h>

#include "tests/hrx/emulator/group.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

alignas(64) u32 g_memory[64];

// A machine whose s[4:5] and v[8:9] point to memory that it may touch.
struct MemoryMachine : Machine {
    MemoryMachine() {
        memory().add({reinterpret_cast<u64>(g_memory), sizeof(g_memory), true});
        s64(4, reinterpret_cast<u64>(g_memory)).v64(8, [](int) { return reinterpret_cast<u64>(g_memory); });
    }
};

// kind: what must be found; text: what its message must name.
void expect_trap(const std::optional<Trap>& trap, TrapKind kind, const std::string& text) {
    ASSERT_TRUE(trap) << "expected a trap: " << to_string(kind);
    EXPECT_EQ(trap->kind, kind) << trap->message();
    EXPECT_NE(trap->message().find(text), std::string::npos) << trap->message();
}

}  // namespace

TEST(Waits, LoadsMustBeWaitedFor) {
    expect_trap(MemoryMachine().run("global_load_b32 v0, v[8:9], off\nv_add_f32 v1, v0, v0"), TrapKind::missing_wait,
                "vmcnt");
    EXPECT_FALSE(MemoryMachine().run("global_load_b32 v0, v[8:9], off\ns_waitcnt vmcnt(0)\nv_add_f32 v1, v0, v0"));
    expect_trap(MemoryMachine().run("s_load_b32 s0, s[4:5], 0\ns_add_u32 s1, s0, 1"), TrapKind::missing_wait,
                "lgkmcnt");
    EXPECT_FALSE(MemoryMachine().run("s_load_b32 s0, s[4:5], 0\ns_waitcnt lgkmcnt(0)\ns_add_u32 s1, s0, 1"));
    Machine lds;
    expect_trap(lds.lds(64).v(1, 0u).run("ds_load_b32 v0, v1\nv_mov_b32 v2, v0"), TrapKind::missing_wait, "lgkmcnt");
    // a wait for another counter is none
    expect_trap(MemoryMachine().run("global_load_b32 v0, v[8:9], off\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v1, v0"),
                TrapKind::missing_wait, "vmcnt");
    // storing and addressing read registers too
    expect_trap(MemoryMachine().run("global_load_b32 v0, v[8:9], off\nglobal_store_b32 v[8:9], v0, off"),
                TrapKind::missing_wait, "v0");
}

TEST(Waits, CountsSayWhichLoadsHaveEnded) {
    const std::string two = "global_load_b32 v0, v[8:9], off\nglobal_load_b32 v1, v[8:9], off offset:4\n";
    EXPECT_FALSE(MemoryMachine().run(two + "s_waitcnt vmcnt(1)\nv_mov_b32 v2, v0"));
    expect_trap(MemoryMachine().run(two + "s_waitcnt vmcnt(1)\nv_mov_b32 v2, v1"), TrapKind::missing_wait, "v1");
    EXPECT_FALSE(MemoryMachine().run(two + "s_waitcnt_vmcnt null, 0\nv_mov_b32 v2, v1"));
    // scalar loads end in any order: only a wait for all tells
    const std::string scalars = "s_load_b32 s0, s[4:5], 0\ns_load_b32 s1, s[4:5], 4\n";
    expect_trap(MemoryMachine().run(scalars + "s_waitcnt lgkmcnt(1)\ns_mov_b32 s2, s0"), TrapKind::missing_wait, "s0");
    EXPECT_FALSE(MemoryMachine().run(scalars + "s_waitcnt lgkmcnt(0)\ns_mov_b32 s2, s0"));
    // and so do flat loads, which may be of memory or of LDS
    const std::string flat = "flat_load_b32 v0, v[8:9]\nflat_load_b32 v1, v[8:9]\n";
    expect_trap(MemoryMachine().run(flat + "s_waitcnt vmcnt(1) lgkmcnt(1)\nv_mov_b32 v2, v0"), TrapKind::missing_wait,
                "v0");
    EXPECT_FALSE(MemoryMachine().run(flat + "s_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32 v2, v0"));
}

TEST(Waits, WritingWhatALoadWillFill) {
    expect_trap(MemoryMachine().run("global_load_b32 v0, v[8:9], off\nv_mov_b32 v0, 0"), TrapKind::missing_wait,
                "written");
    expect_trap(MemoryMachine().run("s_load_b32 s0, s[4:5], 0\ns_mov_b32 s0, 0"), TrapKind::missing_wait, "written");
    // loads of one kind return in order
    EXPECT_FALSE(MemoryMachine().run(
        "global_load_b32 v0, v[8:9], off\nglobal_load_b32 v0, v[8:9], off offset:4\ns_waitcnt vmcnt(0)"));
    MemoryMachine mixed;
    expect_trap(mixed.lds(64).v(1, 0u).run("global_load_b32 v0, v[8:9], off\nds_load_b32 v0, v1"),
                TrapKind::missing_wait, "written");
}

TEST(Waits, AtomicsThatReturn) {
    expect_trap(MemoryMachine().v(1, 1u).run("global_atomic_add_u32 v0, v[8:9], v1, off glc\nv_mov_b32 v2, v0"),
                TrapKind::missing_wait, "v0");
    EXPECT_FALSE(MemoryMachine().v(1, 1u).run("global_atomic_add_u32 v[8:9], v1, off\nv_mov_b32 v2, v1"));
}

TEST(Undefined, Registers) {
    Machine machine;
    expect_trap(machine.run("v_add_f32 v0, v1, v1"), TrapKind::uninitialised, "v1");
    Machine scalar;
    expect_trap(scalar.run("s_add_u32 s0, s1, s1"), TrapKind::uninitialised, "s1");
    Machine mask;
    expect_trap(mask.v(1, 0u).v(2, 0u).run("v_cndmask_b32 v0, v1, v2, vcc_lo"), TrapKind::uninitialised, "vcc_lo");
    // only the lanes that are enabled count
    Machine half;
    EXPECT_FALSE(half.exec(0xff).v(2, 0u).run("v_mov_b32 v1, 1\nv_add_f32 v0, v1, v2"));
    Machine other;
    expect_trap(other.exec(0xff).run("v_mov_b32 v1, 1\ns_mov_b32 exec_lo, -1\nv_add_f32 v0, v1, v1"),
                TrapKind::uninitialised, "lane 8");
}

TEST(Undefined, MovesCarryItAlong) {
    Machine machine;
    EXPECT_FALSE(machine.run("v_mov_b32 v0, v1\ns_mov_b32 s0, s1\ns_mov_b64 s[2:3], s[4:5]"));
    Machine used;
    expect_trap(used.run("v_mov_b32 v0, v1\nv_add_f32 v2, v0, v0"), TrapKind::uninitialised, "v0");
    Machine scalar;
    expect_trap(scalar.run("s_mov_b32 s0, s1\ns_add_u32 s2, s0, 1"), TrapKind::uninitialised, "s0");
}

TEST(Undefined, HighWordsThatOnlyReachHighWords) {
    // compilers leave the high word of an addend undefined when they use the low one of the sum
    const std::string sum = "s_mov_b32 s4, 5\nv_mad_u64_u32 v[2:3], null, s2, v0, s[4:5]\n";
    Machine low;
    EXPECT_FALSE(low.s(2, 3).v(0, 7u).run(sum + "v_add_nc_u32 v4, v2, v2"));
    Machine high;
    expect_trap(high.s(2, 3).v(0, 7u).run(sum + "v_add_nc_u32 v4, v3, v3"), TrapKind::uninitialised, "v3");
    Machine shifted;
    expect_trap(shifted.v(2, 1u).run("v_lshlrev_b64 v[0:1], 2, v[2:3]\nv_mov_b32 v4, v0\nv_add_nc_u32 v5, v4, v1"),
                TrapKind::uninitialised, "v1");
    Machine scalar;
    EXPECT_FALSE(scalar.s(2, 1).run("s_lshl_b64 s[0:1], s[2:3], 2\ns_add_u32 s4, s0, 1"));
    Machine scalar_high;
    expect_trap(scalar_high.s(2, 1).run("s_lshl_b64 s[0:1], s[2:3], 2\ns_add_u32 s4, s1, 1"), TrapKind::uninitialised,
                "s1");
    Machine low_word;
    expect_trap(low_word.s(3, 1).run("s_and_b64 s[0:1], s[2:3], s[2:3]\ns_add_u32 s4, s0, 1"), TrapKind::uninitialised,
                "s0");
    // a shift to the right brings the high word down
    Machine right;
    expect_trap(right.v(2, 1u).run("v_lshrrev_b64 v[0:1], 2, v[2:3]"), TrapKind::uninitialised, "v3");
}

TEST(Undefined, LanesThatOthersRead) {
    Machine machine;
    expect_trap(machine.exec(1).run("v_mov_b32 v1, 1\nv_readlane_b32 s0, v1, 3"), TrapKind::uninitialised, "lane 3");
    Machine dpp;
    expect_trap(dpp.exec(3).v(0, 0u).run("v_mov_b32 v1, 1\ns_mov_b32 exec_lo, 15\nv_mov_b32_dpp v0, v1 "
                                         "quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf"),
                TrapKind::uninitialised, "v1");
    Machine wmma;
    expect_trap(wmma.run("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]"), TrapKind::uninitialised, "v8");
}

TEST(Undefined, LdsBytes) {
    GroupRun run;
    expect_trap(run.lds(64).run("v_mov_b32 v1, 0\nds_load_b32 v2, v1\ns_waitcnt lgkmcnt(0)", 32, 32),
                TrapKind::uninitialised, "LDS byte 0");
    GroupRun partly;
    expect_trap(
        partly.lds(64).run("v_mov_b32 v1, 0\nds_store_b16 v1, v1\ns_waitcnt lgkmcnt(0)\nds_load_b32 v2, v1", 32, 32),
        TrapKind::uninitialised, "LDS byte 2");
}

TEST(Bounds, GlobalMemory) {
    MemoryMachine machine;
    expect_trap(machine.run("global_load_b32 v0, v[8:9], off offset:256"), TrapKind::out_of_bounds, "nearest");
    EXPECT_FALSE(MemoryMachine().run("global_load_b32 v0, v[8:9], off offset:252\ns_waitcnt vmcnt(0)"));
    expect_trap(MemoryMachine().run("global_load_b32 v0, v[8:9], off offset:253"), TrapKind::out_of_bounds, "4 bytes");
    expect_trap(MemoryMachine().run("global_load_b128 v[0:3], v[8:9], off offset:-1"), TrapKind::out_of_bounds,
                "16 bytes");
    Machine null;
    expect_trap(null.v64(8, [](int) { return u64{0}; }).v(1, 0u).run("global_store_b32 v[8:9], v1, off"),
                TrapKind::out_of_bounds, "0x0");
    // one lane of many, and only if it is enabled
    auto last = [](int lane) { return reinterpret_cast<u64>(g_memory) + (lane == 17 ? 4096 : 0); };
    MemoryMachine lane;
    expect_trap(lane.v64(8, last).v(1, 0u).run("global_store_b32 v[8:9], v1, off"), TrapKind::out_of_bounds, "lane 17");
    MemoryMachine disabled;
    EXPECT_FALSE(disabled.v64(8, last).v(1, 0u).exec(~(1u << 17)).run("global_store_b32 v[8:9], v1, off"));
    Machine read_only;
    ASSERT_TRUE(read_only.memory().add({reinterpret_cast<u64>(g_memory), sizeof(g_memory), false}));
    expect_trap(read_only.v64(8, [](int) { return reinterpret_cast<u64>(g_memory); })
                    .v(1, 0u)
                    .run("global_store_b32 v[8:9], v1, off"),
                TrapKind::out_of_bounds, "writable");
    MemoryMachine scalar;
    expect_trap(scalar.run("s_load_b128 s[8:11], s[4:5], 0xf4"), TrapKind::out_of_bounds, "16 bytes");
}

TEST(Bounds, ScratchAndRegisters) {
    Machine machine;
    expect_trap(machine.scratch(16).v(1, 0u).run("scratch_store_b32 off, v1, off offset:16"), TrapKind::out_of_bounds,
                "16 bytes");
    Machine none;
    expect_trap(none.v(1, 0u).run("scratch_store_b32 off, v1, off"), TrapKind::out_of_bounds, "0 bytes");
    GroupRun registers;
    expect_trap(registers.vector_registers(16).run("v_mov_b32 v16, 0", 32, 32), TrapKind::register_range, "v16");
    GroupRun fits;
    EXPECT_FALSE(fits.vector_registers(16).run("v_mov_b32 v15, 0", 32, 32));
}

TEST(Alignment, AtomicsAndScalarLoads) {
    expect_trap(MemoryMachine().v(1, 1u).run("global_atomic_add_u32 v[8:9], v1, off offset:2"), TrapKind::misaligned,
                "multiple");
    MemoryMachine wide;
    expect_trap(wide.v64(2, [](int) { return u64{1}; }).run("global_atomic_add_u64 v[8:9], v[2:3], off offset:4"),
                TrapKind::misaligned, "8 bytes");
    Machine lds;
    expect_trap(lds.lds(64).v(1, 2u).run("ds_add_u32 v1, v1"), TrapKind::misaligned, "4 bytes");
    MemoryMachine scalar;
    expect_trap(scalar.s64(4, reinterpret_cast<u64>(g_memory) + 2).run("s_load_b32 s0, s[4:5], 0"),
                TrapKind::misaligned, "multiple of 4");
    // plain loads may lie anywhere, as HSA sets the hardware up
    EXPECT_FALSE(MemoryMachine().run("global_load_b32 v0, v[8:9], off offset:3\ns_waitcnt vmcnt(0)"));
}

namespace {
// Wave w writes its number to LDS word w; then each wave reads the word of the next one.
std::string exchange(const std::string& between) {
    return R"(
        v_and_b32 v1, 0x3ff, v0
        v_lshrrev_b32 v2, 5, v1
        v_lshlrev_b32 v3, 2, v2
        ds_store_b32 v3, v2
        )" +
           between +
           R"(
        v_add_nc_u32 v4, 1, v2
        v_and_b32 v4, 3, v4
        v_lshlrev_b32 v4, 2, v4
        ds_load_b32 v5, v4
        s_waitcnt lgkmcnt(0)
        s_load_b64 s[4:5], s[0:1], null
        s_waitcnt lgkmcnt(0)
        v_lshlrev_b32 v1, 2, v1
        global_store_b32 v1, v5, s[4:5])";
}
}  // namespace

TEST(Races, ABarrierOrdersWaves) {
    GroupRun good;
    good.lds(16).words().assign(128, 99);
    auto trap = good.run(exchange("s_waitcnt lgkmcnt(0)\ns_barrier"), 128, 128);
    EXPECT_FALSE(trap) << trap->message();
    for (u32 k = 0; k < 128; ++k) EXPECT_EQ(good.words()[k], (k / 32 + 1) % 4);
}

TEST(Races, NoBarrier) {
    GroupRun run;
    run.lds(16).words().assign(128, 99);
    auto trap = run.run(exchange("s_waitcnt lgkmcnt(0)"), 128, 128);
    // the first wave to read finds the next one's word unwritten, or one that races
    ASSERT_TRUE(trap);
    EXPECT_TRUE(trap->kind == TrapKind::lds_race || trap->kind == TrapKind::uninitialised) << trap->message();
}

TEST(Races, ABarrierWithoutAWaitForTheStore) {
    GroupRun run;
    run.lds(16).words().assign(128, 99);
    expect_trap(run.run(exchange("s_barrier\ns_waitcnt lgkmcnt(0)"), 128, 128), TrapKind::lds_race,
                "s_waitcnt lgkmcnt(0)");
}

TEST(Races, WritesOfTwoWaves) {
    GroupRun run;
    expect_trap(run.lds(16).run("v_mov_b32 v1, 0\nds_store_b32 v1, v1\ns_waitcnt lgkmcnt(0)", 64, 64),
                TrapKind::lds_race, "written by wave 0");
    // one byte each is none
    GroupRun bytes;
    EXPECT_FALSE(bytes.lds(16).run("v_lshrrev_b32 v1, 5, v0\nds_store_b8 v1, v1\ns_waitcnt lgkmcnt(0)", 64, 64));
    // neither are atomics
    GroupRun atomics;
    auto trap = atomics.lds(16).run(
        "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\nv_cmpx_gt_u32 1, v0\nds_store_b32 v1, v1\ns_mov_b32 exec_lo, -1\ns_waitcnt "
        "lgkmcnt(0)\ns_barrier\nds_add_u32 v1, v2\ns_waitcnt lgkmcnt(0)",
        64, 64);
    EXPECT_FALSE(trap) << trap->message();
}

TEST(Races, ReadThenWrite) {
    const std::string fill =
        "v_mov_b32 v1, 0\nv_cmpx_gt_u32 1, v0\nds_store_b32 v1, v1\ns_mov_b32 exec_lo, -1\ns_waitcnt "
        "lgkmcnt(0)\ns_barrier\n";
    const std::string read = "ds_load_b32 v2, v1\ns_waitcnt lgkmcnt(0)\n";
    const std::string write = "v_cmpx_lt_u32 63, v0\nds_store_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n";
    GroupRun bad;
    expect_trap(bad.lds(16).run(fill + read + write, 96, 96), TrapKind::lds_race, "read by wave 0");
    GroupRun good;
    auto trap = good.lds(16).run(fill + read + "s_barrier\n" + write, 96, 96);
    EXPECT_FALSE(trap) << trap->message();
}

TEST(FastMode, SkipsTheChecksButNotTheBounds) {
    GroupRun undefined(Mode::fast);
    EXPECT_FALSE(undefined.run("v_add_f32 v1, v2, v2", 32, 32));
    GroupRun outside(Mode::fast);
    expect_trap(outside.run("v_mov_b32 v1, 0\nv_mov_b32 v2, 0\nglobal_load_b32 v3, v[1:2], off", 32, 32),
                TrapKind::out_of_bounds, "0x0");
    GroupRun unknown(Mode::fast);
    expect_trap(unknown.run("v_cubeid_f32 v0, v1, v2, v3", 32, 32), TrapKind::unknown_instruction, "v_cubeid_f32");
}

}  // namespace onebit::emulator
