// If this fails, a replayed program runs with the arguments of another replay.
#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(ReplayTest);

TEST_P(ReplayTest, TenThousandTimesWithPatchedBindings) {
    constexpr uint32_t replays = 10000, places = 1000;
    const Buffer out = zeros(places * 64);
    const Buffer other = zeros(places * 64);
    const Program work = program();
    const uint32_t command = must(dispatch(work, "cts_index", 1, {bind(out)}, {1, 1, 0}));
    must(work.finish());
    // each replay has a place and a constant of its own, and none is waited for
    for (uint32_t i = 0; i < replays; ++i) {
        const Buffer& target = i / places % 2 == 0 ? out : other;
        const hrx_patch patches[] = {{command, 0, bind(target, uint64_t{i % places} * 256)}};
        must(work.patch(patches));
        must(work.patch_constant(command, 8, i + 1));
        must(queue().submit(work));
    }
    must(queue().wait_idle(patience));
    const auto even = read(out, places * 64), odd = read(other, places * 64);
    for (uint32_t i = 0; i < places; ++i) {
        ASSERT_EQ(even[i * 64], replays - 2 * places + i + 1) << i;
        ASSERT_EQ(odd[i * 64], replays - places + i + 1) << i;
        ASSERT_EQ(even[i * 64 + 1], 0u);
    }
}

TEST_P(ReplayTest, EveryReplayIsRun) {
    constexpr uint32_t replays = 2000;
    const Buffer counter = zeros(1);
    const Program work = program();
    must(dispatch(work, "cts_count", 1, {bind(counter)}, {1}));
    must(work.finish());
    for (uint32_t i = 0; i < replays; ++i) must(queue().submit(work));
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(counter, 1).front(), replays * workgroup);
}

TEST_P(ReplayTest, ManyPatchesAtOnce) {
    constexpr uint32_t commands = 100;
    const Buffer first = zeros(commands * 64), second = zeros(commands * 64);
    const Program work = program();
    for (uint32_t i = 0; i < commands; ++i) {
        must(dispatch(work, "cts_index", 1, {bind(first, i * 256)}, {64, 1, i}));
    }
    must(work.finish());
    run(work);
    std::vector<hrx_patch> patches;
    for (uint32_t i = 0; i < commands; ++i) patches.push_back({i, 0, bind(second, (commands - 1 - i) * 256)});
    must(work.patch(patches));
    run(work);
    const auto before = read(first, commands * 64), after = read(second, commands * 64);
    for (uint32_t i = 0; i < commands; ++i) {
        ASSERT_EQ(before[i * 64 + 5], 5 + i);
        ASSERT_EQ(after[(commands - 1 - i) * 64 + 5], 5 + i);
    }
}

TEST_P(ReplayTest, PatchesOfCopyAndFill) {
    const Buffer a = zeros(64), b = zeros(64), c = zeros(64);
    const Program work = program();
    const uint32_t fill = must(work.fill(a, 0, 256, 3));
    must(work.barrier());
    const uint32_t copy = must(work.copy(b, 0, a, 0, 256));
    must(work.finish());
    run(work);
    EXPECT_EQ(read(b, 64), std::vector<uint32_t>(64, 3));
    const hrx_patch patches[] = {{fill, 0, bind(c)}, {copy, 1, bind(c)}, {copy, 0, bind(a)}};
    must(work.patch(patches));
    must(b.write(std::span<const uint32_t>(std::vector<uint32_t>(64, 9))));
    run(work);
    EXPECT_EQ(read(a, 64), std::vector<uint32_t>(64, 3));
    EXPECT_EQ(read(b, 64), std::vector<uint32_t>(64, 9));
    const hrx_patch onto_itself[] = {{copy, 0, bind(c)}};
    EXPECT_TRUE(fails(work.patch(onto_itself), ErrorCode::usage, "overlap"));
    const hrx_patch too_short[] = {{copy, 0, bind(b, 4)}};
    EXPECT_TRUE(fails(work.patch(too_short), ErrorCode::usage, "256"));
}

TEST_P(ReplayTest, WrongPatchesChangeNothing) {
    const Buffer a = zeros(64), b = zeros(64);
    const Program work = program();
    const uint32_t command = must(dispatch(work, "cts_index", 1, {bind(a)}, {64, 1, 1}));
    EXPECT_TRUE(work.patch_constant(command, 8, uint32_t{2}).ok()) << "patches are allowed while recording";
    must(work.finish());
    const hrx_patch wrong_command[] = {{command, 0, bind(b)}, {1, 0, bind(b)}};
    const hrx_patch wrong_binding[] = {{command, 0, bind(b)}, {command, 1, bind(b)}};
    const hrx_patch wrong_range[] = {{command, 0, bind(b)}, {command, 0, bind(b, 300)}};
    const hrx_patch no_buffer[] = {{command, 0, bind(b)}, {command, 0, hrx_binding{}}};
    EXPECT_TRUE(fails(work.patch(wrong_command), ErrorCode::usage, "below 1"));
    EXPECT_TRUE(fails(work.patch(wrong_binding), ErrorCode::usage, "below 1"));
    EXPECT_TRUE(fails(work.patch(wrong_range), ErrorCode::usage));
    EXPECT_TRUE(fails(work.patch(no_buffer), ErrorCode::usage, "NULL"));
    EXPECT_TRUE(fails(work.patch_constant(command, 12, uint32_t{0}), ErrorCode::usage, "12 bytes"));
    EXPECT_TRUE(fails(work.patch_constant(command, UINT32_MAX, uint32_t{0}), ErrorCode::usage));
    EXPECT_TRUE(fails(work.patch_constant(5, 0, uint32_t{0}), ErrorCode::usage));
    EXPECT_TRUE(work.patch({}).ok());
    run(work);
    EXPECT_EQ(read(a, 64)[1], 3u);
    EXPECT_EQ(read(b, 64), std::vector<uint32_t>(64));
}

TEST_P(ReplayTest, ReplacedBuffersMayBeReleased) {
    const Program work = program();
    Buffer target = zeros(64);
    const uint32_t command = must(dispatch(work, "cts_index", 1, {bind(target)}, {64, 1, 0}));
    must(work.finish());
    for (uint32_t i = 0; i < 200; ++i) {
        // nobody else holds the buffer of the replay before, which may still run
        target = must(device().allocate(256 + i * 16));
        const hrx_patch patches[] = {{command, 0, bind(target)}};
        must(work.patch(patches));
        must(work.patch_constant(command, 8, i));
        must(queue().submit(work));
    }
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(target, 64)[3], 3 + 199u);
}

TEST_P(ReplayTest, ProgramsOfOneCommandAndOfThousands) {
    for (const uint32_t commands : {1u, 2u, 3u, 1000u, 5000u}) {
        const Buffer data = zeros(64);
        const Program work = program();
        for (uint32_t i = 0; i < commands; ++i) {
            must(dispatch(work, "cts_step", 1, {bind(data)}, {64, i}));
            must(work.barrier());
        }
        must(work.finish());
        uint32_t expected = 0;
        for (int replay = 0; replay < 2; ++replay) {
            run(work);
            for (uint32_t i = 0; i < commands; ++i) expected = expected * 3 + i;
            ASSERT_EQ(read(data, 64), std::vector<uint32_t>(64, expected)) << commands;
        }
    }
}

TEST_P(ReplayTest, OneProgramOnTwoQueuesNeverRunsTwiceAtOnce) {
    const Queue second = must(device().create_queue());
    const Buffer data = zeros(64);
    const Program work = program();
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 1}));
    must(work.finish());
    uint32_t expected = 0;
    for (int i = 0; i < 200; ++i) {
        must((i % 2 == 0 ? queue() : second).submit(work));
        expected = expected * 3 + 1;
    }
    must(queue().wait_idle(patience));
    must(second.wait_idle(patience));
    EXPECT_EQ(read(data, 64), std::vector<uint32_t>(64, expected));
}

}  // namespace
}  // namespace onebit::hrx::cts
