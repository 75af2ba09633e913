// If this fails, what is measured of one member was computed by another, or a new route does not hold.
#include "tandem/forced_member.h"

#include <gtest/gtest.h>

#include <thread>

#include "tandem/counters.h"
#include "tandem/device.h"
#include "tests/tandem/model_run.h"

namespace onebit::tandem {
namespace {

Counts counts_of(const std::string& choice) {
    const std::string name = ggml_backend_dev_name(device_of(choice));
    for (auto& counts : tandem_counts())
        if (counts.tandem == name) return counts;
    return {};
}

TEST(ForcedMember, HoldsForItsThreadAndScope) {
    EXPECT_FALSE(ForcedMember::current());
    {
        const ForcedMember forced(1);
        EXPECT_EQ(ForcedMember::current(), 1u);
        std::thread([] { EXPECT_FALSE(ForcedMember::current()); }).join();
    }
    EXPECT_FALSE(ForcedMember::current());
}

// a member that refuses an op shows where the graphs went: they fall back, which is counted
TEST(ForcedMember, RunsEverythingOnThatMemberUncounted) {
    const std::string choice = "owner=CPU,prefill=CPU,decode=guest:CPU,min=16";
    const ModelRun alone = run_model("CPU");
    for (const size_t member : {0, 1}) {
        const ForcedMember forced(member);
        const uint64_t before = counts_of(choice).shadow_builds;
        const ModelRun run = run_model(choice);
        ASSERT_FALSE(run.failed);
        EXPECT_EQ(run.logits, alone.logits);
        const Counts counts = counts_of(choice);
        EXPECT_EQ(counts.shadow_builds > before, member == 1) << "only a guest needs shadows";
        EXPECT_EQ(counts.handoffs, 0u);
        for (const MemberCounts& one : counts.members) EXPECT_EQ(one.graphs, 0u) << one.member;
    }
    ASSERT_FALSE(run_model(choice).failed);
    EXPECT_GT(counts_of(choice).members[0].graphs, 0u);
    EXPECT_GT(counts_of(choice).members[1].graphs, 0u);
}

TEST(TandemRoute, CanBeSetWhileItRuns) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=CPU,min=1000000";
    const std::string name = ggml_backend_dev_name(device_of(choice));
    const ModelRun alone = run_model("CPU");
    EXPECT_EQ(run_model(choice).logits, alone.logits);
    EXPECT_EQ(counts_of(choice).members[1].graphs, 0u);
    ASSERT_TRUE(set_tandem_route(name, "guest:CPU", "CPU", 16).ok());
    EXPECT_EQ(run_model(choice).logits, alone.logits);
    EXPECT_EQ(counts_of(choice).members[1].prefill_tokens, 48u);
    EXPECT_EQ(counts_of(choice).members[1].decode_tokens, 0u);
    ASSERT_TRUE(set_tandem_route(name, "CPU", "guest:CPU", 16).ok());
    EXPECT_EQ(run_model(choice).logits, alone.logits);
    EXPECT_EQ(counts_of(choice).members[1].decode_tokens, 8u);

    EXPECT_FALSE(set_tandem_route("Tandem99", "CPU", "CPU", 16).ok());
    EXPECT_FALSE(set_tandem_route(name, "CUDA0", "CPU", 16).ok());
    EXPECT_FALSE(set_tandem_route(name, "CPU", "CUDA0", 16).ok());
    EXPECT_FALSE(set_tandem_route(name, "CPU", "CPU", 0).ok());
}

}  // namespace
}  // namespace onebit::tandem
