// If this fails, a command of a program sees memory before an earlier one has written it, or after a later one has.
#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(BarrierTest);

uint32_t step(uint32_t value, uint32_t constant) { return value * 3 + constant; }

TEST_P(BarrierTest, AChainRunsInOrder) {
    constexpr uint32_t links = 200, count = 64 * 3;
    const Buffer data = zeros(count);
    const Program work = program();
    uint32_t expected = 0;
    for (uint32_t i = 0; i < links; ++i) {
        must(dispatch(work, "cts_step", 3, {bind(data)}, {count, i}));
        must(work.barrier());
        expected = step(expected, i);
    }
    must(work.finish());
    run(work);
    EXPECT_EQ(read(data, count), std::vector<uint32_t>(count, expected));
}

TEST_P(BarrierTest, CopyFillAndKernelDependOnEachOther) {
    // read after write, write after read, write after write, of each pair of kinds
    constexpr uint32_t count = 4096;
    const Buffer a = zeros(count), b = zeros(count), c = zeros(count);
    const Program work = program();
    const auto then = [&] { must(work.barrier()); };
    must(work.fill(a, 0, count * 4, 7));
    then();
    must(dispatch(work, "cts_step", count / 64, {bind(a)}, {count, 1}));  // a = 22
    then();
    must(work.copy(b, 0, a, 0, count * 4));  // b = 22
    then();
    must(work.fill(a, 0, count * 4, 1));  // a = 1
    then();
    must(dispatch(work, "cts_add", count / 64, {bind(c), bind(a), bind(b)}, {count}));  // c = 23
    then();
    must(work.copy(a, 0, c, 0, count * 4));  // a = 23
    must(work.fill(b, 0, count * 4, 5));     // b = 5, beside the copy
    then();
    must(dispatch(work, "cts_add", count / 64, {bind(c), bind(a), bind(b)}, {count}));  // c = 28
    must(work.finish());
    for (int i = 0; i < 3; ++i) {
        run(work);
        ASSERT_EQ(read(c, count), std::vector<uint32_t>(count, 28));
    }
}

TEST_P(BarrierTest, SlowWorkBeforeABarrierIsWaitedFor) {
    constexpr uint32_t rounds = 20000;
    const Buffer slow = zeros(64), sum = zeros(64);
    uint32_t value = 3;
    for (uint32_t i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
    const Program work = program();
    must(dispatch(work, "cts_busy", 1, {bind(slow)}, {rounds, 3}));
    must(work.barrier());
    must(dispatch(work, "cts_add", 1, {bind(sum), bind(slow), bind(slow)}, {64}));
    must(work.finish());
    run(work);
    EXPECT_EQ(read(sum, 64).front(), 2 * value);
}

TEST_P(BarrierTest, FansOutAndIn) {
    // one, then many beside each other, then one that needs them all
    constexpr uint32_t width = 40;
    const Buffer first = zeros(64), parts = zeros(64 * width), last = zeros(64 * width);
    const Program work = program();
    must(dispatch(work, "cts_index", 1, {bind(first)}, {64, 1, 1}));
    must(work.barrier());
    for (uint32_t i = 0; i < width; ++i) {
        must(dispatch(work, "cts_add", 1, {bind(parts, i * 256), bind(first), bind(first)}, {64}));
    }
    must(work.barrier());
    for (uint32_t i = 0; i < width; ++i) {
        must(dispatch(work, "cts_step", 1, {bind(parts, i * 256)}, {64, i}));
    }
    must(work.barrier());
    must(dispatch(work, "cts_add", width, {bind(last), bind(parts), bind(parts)}, {64 * width}));
    must(work.finish());
    run(work);
    const auto seen = read(last, 64 * width);
    for (uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], 2 * (6 * (i % 64 + 1) + i / 64));
}

TEST_P(BarrierTest, WorkWithoutABarrierMayTouchItsOwnMemory) {
    constexpr uint32_t count = 300;
    const Buffer out = zeros(64 * count);
    const Program work = program();
    for (uint32_t i = 0; i < count; ++i) {
        must(dispatch(work, "cts_index", 1, {bind(out, i * 256)}, {64, 1, i}));
    }
    must(work.finish());
    run(work);
    const auto seen = read(out, 64 * count);
    for (uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i % 64 + i / 64);
}

TEST_P(BarrierTest, BarriersAtTheEndsAndInRowsAreHarmless) {
    const Buffer data = zeros(64);
    const Program work = program();
    must(work.barrier());
    must(work.barrier());
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 4}));
    must(work.barrier());
    must(dispatch(work, "cts_step", 0, {bind(data)}, {64, 4}));
    must(work.barrier());
    must(work.barrier());
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 5}));
    must(work.barrier());
    must(work.finish());
    run(work);
    EXPECT_EQ(read(data, 64), std::vector<uint32_t>(64, 17));
}

TEST_P(BarrierTest, SubmissionsOfAQueueFollowEachOther) {
    constexpr uint32_t times = 300;
    const Buffer data = zeros(64);
    std::vector<Program> programs;
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 3; ++i) {
        programs.push_back(program());
        must(dispatch(programs.back(), "cts_step", 1, {bind(data)}, {64, i + 1}));
        must(programs.back().finish());
    }
    for (uint32_t i = 0; i < times; ++i) {
        must(queue().submit(programs[i % 3]));
        expected = step(expected, i % 3 + 1);
    }
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(data, 64), std::vector<uint32_t>(64, expected));
}

TEST_P(BarrierTest, AtomicsOfWorkBesideEachOtherAreCounted) {
    const Buffer counter = zeros(1);
    const Program work = program();
    for (uint32_t i = 0; i < 50; ++i) must(dispatch(work, "cts_count", 2, {bind(counter)}, {1}));
    must(work.finish());
    run(work);
    EXPECT_EQ(read(counter, 1).front(), 50u * 2 * workgroup);
}

}  // namespace
}  // namespace onebit::hrx::cts
