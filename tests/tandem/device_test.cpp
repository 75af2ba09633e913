// If this fails, a tandem of two CPUs computes something else than one CPU alone: routing, shadows, kept inputs or the
// repeat after a failure are wrong. Needs no GPU, so the sanitizers see all of it.
#include "tandem/device.h"

#include <gtest/gtest.h>

#include "tandem/counters.h"
#include "tests/tandem/model_run.h"

namespace onebit::tandem {
namespace {

Counts counts_of(const std::string& choice) {
    const std::string name = ggml_backend_dev_name(device_of(choice));
    for (auto& counts : tandem_counts())
        if (counts.tandem == name) return counts;
    return {};
}

const ModelRun& alone() {
    static const ModelRun run = run_model("CPU");
    return run;
}

TEST(TandemOfCpus, EverythingOnTheOwnerIsTheCpu) {
    const std::string choice = "owner=CPU,min=16";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    EXPECT_EQ(counts_of(choice).handoffs, 0u);
}

TEST(TandemOfCpus, EverythingOnTheGuestIsTheCpu) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,min=16";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    const Counts counts = counts_of(choice);
    ASSERT_EQ(counts.members.size(), 2u);
    EXPECT_EQ(counts.members[0].graphs, 0u);
    EXPECT_EQ(counts.members[1].decode_tokens, 8u);
    EXPECT_EQ(counts.members[1].prefill_tokens, 48u);
    EXPECT_GT(counts.shadow_hits, 0u);
}

TEST(TandemOfCpus, PrefillAndDecodeOnDifferentMembersAreTheCpu) {
    for (const char* choice : {"owner=CPU,prefill=guest:CPU,min=16", "owner=CPU,decode=guest:CPU,min=16"}) {
        const ModelRun run = run_model(choice);
        ASSERT_FALSE(run.failed);
        EXPECT_EQ(run.logits, alone().logits) << choice;
        const Counts counts = counts_of(choice);
        const size_t prefill = choice[10] == 'p' ? 1 : 0;
        EXPECT_EQ(counts.members[prefill].prefill_tokens, 48u) << choice;
        EXPECT_EQ(counts.members[1 - prefill].decode_tokens, 8u) << choice;
        EXPECT_EQ(counts.members[prefill].decode_tokens, 0u) << choice;
    }
}

TEST(TandemOfCpus, NoSwitchWithinAPhase) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=17";
    ASSERT_FALSE(run_model(choice, {.prompt = 64, .answer = 24}).failed);
    // into prefill and out of it
    EXPECT_LE(counts_of(choice).handoffs, 2u);
}

TEST(TandemOfCpus, ThresholdEdges) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=32,strict=1";
    uint64_t prefill = 0, decode = 0;
    const struct {
        int prompt;
        uint64_t prefilled;
    } cases[] = {{1, 0}, {31, 0}, {32, 32}, {33, 32}, {64, 64}, {128, 128}};
    for (const auto& [prompt, prefilled] : cases) {
        const RunOptions options{.prompt = prompt, .answer = 1, .ubatch = 32};
        const ModelRun run = run_model(choice, options);
        ASSERT_FALSE(run.failed);
        EXPECT_EQ(run.logits, run_model("CPU", options).logits) << prompt;
        const Counts counts = counts_of(choice);
        EXPECT_EQ(counts.members[1].prefill_tokens - prefill, prefilled) << prompt;
        EXPECT_EQ(counts.members[0].decode_tokens - decode, static_cast<uint64_t>(prompt) + 1 - prefilled) << prompt;
        prefill = counts.members[1].prefill_tokens;
        decode = counts.members[0].decode_tokens;
    }
}

TEST(TandemOfCpus, PiecesOfAGraphAreTheCpu) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,segments=always,deny=guest:CPU/SWIGLU";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    const Counts counts = counts_of(choice);
    EXPECT_FALSE(counts.fallbacks.empty());
    EXPECT_GT(counts.handoffs, 8u);
}

TEST(TandemOfCpus, AnOpThatTheGuestLacksSendsTheGraphToTheOwner) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,deny=guest:CPU/ADD";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    const Counts counts = counts_of(choice);
    EXPECT_EQ(counts.members[1].graphs, 0u);
    EXPECT_EQ(counts.fallbacks.size(), 1u);
    EXPECT_EQ(counts.handoffs, 0u);
}

TEST(TandemOfCpus, VariantsOfAttentionAndCache) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=16";
    for (const RunOptions& options :
         {RunOptions{.flash_attention = false}, RunOptions{.cache = GGML_TYPE_Q8_0},
          RunOptions{.prompt = 40, .sequences = 3}, RunOptions{.prompt = 1}, RunOptions{.prompt = 100, .ubatch = 64}}) {
        const ModelRun run = run_model(choice, options);
        ASSERT_FALSE(run.failed);
        EXPECT_EQ(run.logits, run_model("CPU", options).logits);
    }
}

// DEV23: the embedding of 2 MiB is above the limit and gets a region of its own.
TEST(TandemOfCpus, SmallRegionsMakeManyBuffers) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,region=1M";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
}

TEST(TandemOfCpus, ACacheAboveFourGibibytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "takes minutes, and the memory of a large machine";
#endif
    if (available_memory() < (8ull << 30)) GTEST_SKIP() << "8 GiB of free memory are needed";
    const std::string choice = "owner=CPU,prefill=guest:CPU,region=1G";
    const ModelRun run = run_model(choice, {.answer = 2, .cache_bytes = 9ull << 29});
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, run_model("CPU", {.answer = 2}).logits);
}

// Failures: the graph is run, its inputs are overwritten by then, and the error comes afterwards.

TEST(TandemFailure, AFailedGraphIsRepeatedOnTheOwner) {
    for (const int at : {0, 1, 2, 5, 9}) {
        const std::string choice =
            "owner=CPU,prefill=guest:CPU,decode=guest:CPU,fault=compute/guest:CPU/" + std::to_string(at);
        const ModelRun run = run_model(choice);
        ASSERT_FALSE(run.failed) << at;
        EXPECT_EQ(run.logits, alone().logits) << at;
        const Counts counts = counts_of(choice);
        EXPECT_EQ(counts.repeats, 1u) << at;
        EXPECT_EQ(counts.members[1].failures, 1u) << at;
        EXPECT_FALSE(counts.members[1].dropped);
    }
}

TEST(TandemFailure, AFailedGraphOfTheOwnerIsRepeatedOnTheGuest) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=16,fault=compute/CPU/3";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    EXPECT_EQ(counts_of(choice).repeats, 1u);
}

TEST(TandemFailure, WithoutTheKeptInputsARepeatWouldBeWrong) {
    // the repeat is switched off: the request fails instead of giving a wrong answer
    const ModelRun run = run_model("owner=CPU,prefill=guest:CPU,decode=guest:CPU,repeat=0,fault=compute/guest:CPU/1");
    EXPECT_TRUE(run.failed);
}

TEST(TandemFailure, AMemberThatKeepsFailingIsDropped) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,fault=compute/guest:CPU/2/1000";
    const ModelRun run = run_model(choice);
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, alone().logits);
    const Counts counts = counts_of(choice);
    EXPECT_TRUE(counts.members[1].dropped);
    EXPECT_EQ(counts.repeats, 3u);
    EXPECT_GT(counts.members[0].graphs, 0u);
}

TEST(TandemFailure, BothMembersFailingFailsTheRequestOnly) {
    const std::string choice = "owner=CPU,fault=compute/CPU/1";
    EXPECT_TRUE(run_model(choice).failed);
    EXPECT_EQ(run_model(choice).logits, alone().logits);
}

TEST(TandemFailure, AResultThatIsNotANumberIsComputedAgain) {
    for (const char* choice : {"owner=CPU,prefill=guest:CPU,decode=guest:CPU,fault=nan/guest:CPU/0",
                               "owner=CPU,prefill=guest:CPU,decode=guest:CPU,fault=nan/guest:CPU/4",
                               "owner=CPU,prefill=guest:CPU,min=16,fault=nan/CPU/2"}) {
        const ModelRun run = run_model(choice);
        ASSERT_FALSE(run.failed) << choice;
        EXPECT_EQ(run.logits, alone().logits) << choice;
        EXPECT_EQ(counts_of(choice).repeats, 1u) << choice;
    }
}

// Programs that look at nodes have graphs computed in pieces, which are gone when the result is read.
TEST(TandemFailure, AResultOfPiecesThatIsNotANumberFailsTheNextGraph) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU";
    const ModelRun run = run_model(choice, {.callback = true});
    ASSERT_FALSE(run.failed);
    EXPECT_EQ(run.logits, run_model("CPU", {.callback = true}).logits);
    const std::string wrong = choice + ",fault=nan/guest:CPU/3";
    EXPECT_TRUE(run_model(wrong, {.callback = true}).failed);
    EXPECT_EQ(counts_of(wrong).repeats, 0u);
}

TEST(TandemFailure, AFailedAllocationOrMappingIsAnErrorNotACrash) {
    for (const char* choice :
         {"owner=CPU,prefill=guest:CPU,fault=allocate/CPU/1", "owner=CPU,prefill=guest:CPU,fault=map/guest:CPU/1"}) {
        EXPECT_TRUE(run_model(choice).failed) << choice;
        const ModelRun run = run_model(choice);
        EXPECT_EQ(run.logits, alone().logits) << choice;
    }
}

// --strict

TEST(TandemStrict, AnOpThatTheMemberOfAPhaseLacksIsAnErrorThatNamesBoth) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=16,strict=1,deny=guest:CPU/SWIGLU";
    EXPECT_TRUE(run_model(choice).failed);
    const Counts counts = counts_of(choice);
    EXPECT_GT(counts.refused, 0u);
    EXPECT_EQ(counts.members[1].graphs, 0u);
    EXPECT_TRUE(counts.fallbacks.empty());
    for (const char* word : {"SWIGLU", "guest:CPU", "strict"})
        EXPECT_NE(counts.last_error.find(word), std::string::npos) << counts.last_error;
    // the other phase does not need the op's member
    EXPECT_FALSE(run_model(choice, {.prompt = 15, .answer = 2}).failed);
}

TEST(TandemStrict, AFailedGraphIsNotRepeatedOnAnotherMember) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,strict=1,fault=compute/guest:CPU/1";
    EXPECT_TRUE(run_model(choice).failed);
    const Counts counts = counts_of(choice);
    EXPECT_EQ(counts.repeats, 0u);
    EXPECT_NE(counts.last_error.find("strict"), std::string::npos) << counts.last_error;
    EXPECT_EQ(run_model(choice).logits, alone().logits);
}

TEST(TandemCounters, GraphsArePerPhaseAndNoMemberIsMarkedAtTheEnd) {
    std::atomic<uint64_t> running{7};
    watch_running_member(&running);
    const std::string choice = "owner=CPU,prefill=guest:CPU,decode=guest:CPU,min=24";
    ASSERT_FALSE(run_model(choice).failed);
    watch_running_member(nullptr);
    EXPECT_EQ(running, 0u);
    const MemberCounts guest = counts_of(choice).members[1];
    EXPECT_EQ(guest.graphs - guest.prefill_graphs, 9u);  // 16 tokens of the prompt, and each of the answer
    EXPECT_EQ(guest.prefill_graphs, 1u);
}

TEST(TandemMemory, SharedBytesAreCountedOnceAndGivenBack) {
    const std::string choice = "owner=CPU,prefill=guest:CPU,min=24";
    ASSERT_FALSE(run_model(choice).failed);
    EXPECT_EQ(counts_of(choice).shared_bytes, 0u);
    EXPECT_EQ(counts_of(choice).shared_buffers, 0u);
}

TEST(TandemDevice, WrongMembersAreRefusedByName) {
    for (const char* text : {"owner=Nothing0", "owner=CPU,prefill=Nothing0", "owner=CPU,deny=Nothing0/ADD"}) {
        const auto settings = parse_settings(text);
        ASSERT_TRUE(settings.ok());
        const auto device = register_tandem(*settings);
        ASSERT_FALSE(device.ok()) << text;
        EXPECT_NE(device.error().message().find("Nothing0"), std::string::npos) << device.error().message();
    }
}

}  // namespace
}  // namespace onebit::tandem
