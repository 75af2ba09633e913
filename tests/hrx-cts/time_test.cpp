// If this fails, times that libhrx reports of a program's commands are not in the order in which they ran.
#include <cstring>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(TimeTest);

TEST_P(TimeTest, TimestampsGrow) {
    const Buffer data = zeros(64);
    const Program work = program();
    for (uint32_t i = 0; i < 10; ++i) {
        EXPECT_EQ(must(work.timestamp()), i);
        must(dispatch(work, "cts_busy", 1, {bind(data)}, {1000, i}));
    }
    must(work.timestamp());
    must(work.finish());
    EXPECT_TRUE(fails(work.timestamps(12), ErrorCode::usage, "11 slots"));
    std::vector<uint64_t> before;
    for (int replay = 0; replay < 3; ++replay) {
        run(work);
        const auto times = must(work.timestamps(11));
        EXPECT_GT(times[0], 0u);
        for (size_t i = 1; i < times.size(); ++i) ASSERT_GE(times[i], times[i - 1]) << i;
        EXPECT_GT(times[10], times[0]);
        if (!before.empty()) {
            EXPECT_GE(times[0], before[10]);
        }
        before = times;
    }
}

TEST_P(TimeTest, WaitsForWhatStandsBeforeIt) {
    // a longer program takes longer: by the timestamps themselves, which bound the work between them
    const Buffer data = zeros(64);
    const Program work = program();
    must(work.timestamp());
    must(dispatch(work, "cts_busy", 1, {bind(data)}, {200, 1}));
    must(work.timestamp());
    must(dispatch(work, "cts_busy", 1, {bind(data)}, {400000, 1}));
    must(work.timestamp());
    must(work.finish());
    run(work);
    const auto times = must(work.timestamps(3));
    EXPECT_GT(times[2] - times[1], times[1] - times[0]);
}

TEST_P(TimeTest, ProfileNamesEachCommand) {
    const Buffer data = zeros(64), other = zeros(64);
    const Program work = program(HRX_PROGRAM_PROFILE);
    EXPECT_TRUE(fails(work.timestamp(), ErrorCode::conflict, "HRX_PROGRAM_PROFILE"));
    must(work.fill(data, 0, 256, 1));
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 1}));
    must(dispatch(work, "cts_step", 0, {bind(data)}, {64, 1}));
    must(work.copy(other, 0, data, 0, 256));
    must(work.finish());
    run(work);
    const auto entries = must(work.profile());
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_STREQ(entries[0].name, "fill");
    EXPECT_STREQ(entries[1].name, "cts_step");
    EXPECT_STREQ(entries[2].name, "cts_step");
    EXPECT_STREQ(entries[3].name, "copy");
    for (size_t i = 0; i < entries.size(); ++i) {
        EXPECT_GE(entries[i].end, entries[i].begin);
        if (i != 0) {
            EXPECT_EQ(entries[i].begin, entries[i - 1].end);
        }
    }
    // each command had a barrier after it
    EXPECT_EQ(read(other, 64), std::vector<uint32_t>(64, 4));
}

TEST_P(TimeTest, ProgramsWithoutTimesSaySo) {
    const Program work = program();
    EXPECT_TRUE(fails(work.timestamps(0), ErrorCode::conflict));
    must(work.finish());
    EXPECT_TRUE(fails(work.timestamps(1), ErrorCode::usage, "0 slots"));
    EXPECT_TRUE(work.timestamps(0).ok());
    EXPECT_TRUE(fails(work.profile(), ErrorCode::conflict, "HRX_PROGRAM_PROFILE"));
}

}  // namespace
}  // namespace onebit::hrx::cts
