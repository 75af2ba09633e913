// If this fails, 1bit plan calls a model fitting that does not fit, and serve is killed instead of refusing.
#include "engine/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace onebit {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr uint64_t GiB = 1ull << 30;

PlanRow row(const std::string& device, const std::string& pool, uint64_t needed, uint64_t free, uint64_t total) {
    PlanRow row;
    row.device = device;
    row.pool = pool;
    row.weights = needed;
    row.free_bytes = free;
    row.total_bytes = total;
    return row;
}

Plan judged(std::vector<PlanRow> rows) {
    Plan plan;
    plan.model = "m.gguf";
    plan.context = 4096;
    plan.rows = std::move(rows);
    judge(plan);
    return plan;
}

TEST(JudgePlan, NoRowsFit) { EXPECT_TRUE(judged({}).fits); }

TEST(JudgePlan, ExactlyFullFitsAndOneByteMoreDoesNot) {
    EXPECT_TRUE(judged({row("CPU", "host", GiB, GiB, 2 * GiB)}).fits);
    const Plan plan = judged({row("CPU", "host", GiB + 1, GiB, 2 * GiB)});
    EXPECT_FALSE(plan.fits);
    ASSERT_THAT(plan.notes, SizeIs(1));
    EXPECT_THAT(plan.notes[0], HasSubstr("CPU needs 1.0 GiB and has 1.0 GiB free: 1 B too little"));
}

TEST(JudgePlan, OnePoolIsCountedOnce) {  // DEV05: host, HRX0 and Vulkan0 in one memory
    const Plan plan = judged({row("HRX0", "host", 60 * GiB, 100 * GiB, 128 * GiB),
                              row("Vulkan0", "host", 60 * GiB, 100 * GiB, 128 * GiB),
                              row("CPU", "host", 1 * GiB, 90 * GiB, 128 * GiB)});
    EXPECT_FALSE(plan.fits);
    EXPECT_THAT(plan.notes[0], HasSubstr("HRX0 + Vulkan0 + CPU together"));
    EXPECT_THAT(to_table(plan), HasSubstr("HRX0 + Vulkan0 + CPU"));
    EXPECT_TRUE(judged({row("HRX0", "host", 60 * GiB, 100 * GiB, 128 * GiB),
                        row("Vulkan0", "host", 30 * GiB, 100 * GiB, 128 * GiB)})
                    .fits);
}

TEST(JudgePlan, SeparatePoolsDoNotHelpEachOther) {
    EXPECT_TRUE(
        judged({row("CUDA0", "a", 9 * GiB, 10 * GiB, 10 * GiB), row("CPU", "host", 9 * GiB, 10 * GiB, 10 * GiB)}).fits);
    EXPECT_FALSE(
        judged({row("CUDA0", "a", 11 * GiB, 10 * GiB, 10 * GiB), row("CPU", "host", 1, 100 * GiB, 100 * GiB)}).fits);
}

TEST(JudgePlan, APartOfAPoolHasItsOwnLimit) {  // a device that reaches only part of the host's memory
    EXPECT_FALSE(judged({row("Vulkan0", "host", 20 * GiB, 16 * GiB, 16 * GiB),
                         row("CPU", "host", 1 * GiB, 100 * GiB, 128 * GiB)})
                     .fits);
}

TEST(JudgePlan, UnknownMemoryFitsWithANote) {  // DEV09
    const Plan plan = judged({row("Vulkan0", "0000:01:00.0", 20 * GiB, 0, 0)});
    EXPECT_TRUE(plan.fits);
    EXPECT_THAT(plan.notes, SizeIs(1));
    EXPECT_THAT(to_table(plan), HasSubstr("unknown"));
}

TEST(JudgePlan, KnownAndNothingFreeDoesNotFit) { EXPECT_FALSE(judged({row("Vulkan0", "p", 1, 0, 8 * GiB)}).fits); }

TEST(JudgePlan, HugeNumbersDoNotWrap) {
    PlanRow huge = row("CPU", "host", UINT64_MAX, GiB, GiB);
    huge.kv_cache = huge.compute = UINT64_MAX;
    EXPECT_FALSE(judged({huge}).fits);
    EXPECT_FALSE(judged({huge, huge}).fits);
}

TEST(Slack, IsThatOfTheTightestPlace) {
    EXPECT_EQ(slack_bytes(judged({})), INT64_MAX);
    EXPECT_EQ(slack_bytes(judged({row("CUDA0", "a", 5, 0, 0)})), INT64_MAX);
    EXPECT_EQ(slack_bytes(judged({row("CUDA0", "a", 6, 10, 10), row("CPU", "host", 1, 10, 10)})), 4);
    EXPECT_EQ(slack_bytes(judged({row("Vulkan0", "host", 6, 10, 10), row("CPU", "host", 7, 10, 10)})), -3);
    EXPECT_LT(slack_bytes(judged({row("CPU", "host", UINT64_MAX, 1, 1)})), 0);
}

TEST(PlanJson, HasWhatProgramsRead) {
    const Plan plan = judged({row("CPU", "host", 3 * GiB, 2 * GiB, 2 * GiB), row("CUDA0", "a", 1, 0, 0)});
    const auto json = nlohmann::json::parse(plan_to_json(plan));
    EXPECT_EQ(json["fits"], false);
    EXPECT_EQ(json["context"], 4096);
    EXPECT_EQ(json["slots"], 1);
    EXPECT_EQ(json["table"], to_table(plan));
    EXPECT_EQ(json["rows"][0]["needed"], 3 * GiB);
    EXPECT_TRUE(json["rows"][1]["free_bytes"].is_null());
    EXPECT_THAT(json["notes"], SizeIs(2));
}

TEST(SlotsText, SaysWhoseContextItIs) {
    Plan plan;
    plan.context = 4096;
    EXPECT_EQ(slots_text(plan), "context of 4096 tokens");
    plan.slots = 4;
    EXPECT_EQ(slots_text(plan), "4 slots of 4096 tokens each");
    plan.shared = true;
    EXPECT_EQ(slots_text(plan), "context of 4096 tokens for all 4 slots");
}

}  // namespace
}  // namespace onebit
