// If this fails, verify passes a split that computes other things than one device, or blames one that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/verify.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using Numbers = std::vector<uint32_t>;

TEST(VerifyEdges, AreOneLessAndOneMoreOfEachLimit) {
    EXPECT_EQ(verify_edges(512, 0, false), (Numbers{1, 2, 511, 512, 513, 1536}));
    EXPECT_EQ(verify_edges(512, 64, false), (Numbers{1, 2, 63, 64, 65, 511, 512, 513, 575, 576, 577, 1536}));
    EXPECT_EQ(verify_edges(32, 8, false), (Numbers{1, 2, 7, 8, 9, 31, 32, 33, 39, 40, 41, 96}));
}

// a device sees ubatches: a larger threshold acts as one of a whole ubatch
TEST(VerifyEdges, AThresholdAboveAUbatchIsAUbatch) {
    EXPECT_EQ(verify_edges(512, 1024, false), (Numbers{1, 2, 511, 512, 513, 1023, 1024, 1025, 1536}));
    EXPECT_EQ(verify_edges(512, UINT32_MAX, false), verify_edges(512, 512, false));
}

TEST(VerifyEdges, SmallestAndLargestUbatch) {
    EXPECT_EQ(verify_edges(1, 0, false), (Numbers{1, 2, 3}));
    EXPECT_EQ(verify_edges(1, 1, false), (Numbers{1, 2, 3}));
    for (const uint32_t length : verify_edges(UINT32_MAX, UINT32_MAX, true)) EXPECT_GE(length, 1u);
}

TEST(VerifyEdges, Beyond4096) {
    EXPECT_THAT(verify_edges(512, 32, true), IsSupersetOf({4095u, 4096u, 4097u, 4607u, 4608u, 4609u}));
}

Comparison comparison_of(double mean_kl, double max_kl) {
    Comparison comparison;
    comparison.tokens = 65;
    comparison.mean_kl = mean_kl;
    comparison.max_kl = max_kl;
    comparison.perplexity_reference = comparison.perplexity = 10;
    return comparison;
}

std::vector<std::string> faults_of(const Comparison& tested, std::optional<Comparison> third = {},
                                   uint64_t different = 0, std::optional<Comparison> usual = {}) {
    VerifyCase one;
    one.tested = tested;
    one.third = third;
    one.different = different;
    return verify_faults(one, usual, {});
}

TEST(VerifyFaults, TheBoundItselfPasses) {
    EXPECT_THAT(faults_of(comparison_of(0.0006, 0.007)), IsEmpty());
    EXPECT_THAT(faults_of(comparison_of(0.000601, 0.007)), ElementsAre(HasSubstr("mean KL")));
    EXPECT_THAT(faults_of(comparison_of(0.0006, 0.00701)), ElementsAre(HasSubstr("largest KL")));
}

TEST(VerifyFaults, TheThirdDeviceWidensTheBoundAndNeverNarrowsIt) {
    EXPECT_THAT(faults_of(comparison_of(0.012, 0.12), comparison_of(0.0101, 0.101)), IsEmpty());
    EXPECT_THAT(faults_of(comparison_of(0.0122, 0.12), comparison_of(0.0101, 0.101)), SizeIs(1));
    EXPECT_THAT(faults_of(comparison_of(0.0006, 0.007), comparison_of(0, 0)), IsEmpty());
}

// the largest of a few positions is little to go by: all cases of the run count
TEST(VerifyFaults, WhatIsUsualInAllCasesWidensEachCase) {
    EXPECT_THAT(faults_of(comparison_of(0.012, 0.12), comparison_of(0.001, 0.01), 0, comparison_of(0.0101, 0.101)),
                IsEmpty());
    EXPECT_THAT(faults_of(comparison_of(0.012, 0.13), comparison_of(0.001, 0.01), 0, comparison_of(0.0101, 0.101)),
                ElementsAre(HasSubstr("largest KL")));
    EXPECT_THAT(faults_of(comparison_of(0.012, 0.12), comparison_of(0.0101, 0.101), 0, comparison_of(0, 0)), IsEmpty());
}

// a third device that is broken itself must not excuse anything
TEST(VerifyFaults, AThirdWithoutNumbersWidensNothing) {
    Comparison broken;
    broken.tokens = broken.not_finite = 65;
    broken.mean_kl = 100;
    EXPECT_THAT(faults_of(comparison_of(0.001, 0.001), broken), SizeIs(1));
}

TEST(VerifyFaults, OneOfSixtyFiveMayHaveAnotherBest) {
    EXPECT_THAT(faults_of(comparison_of(0, 0), {}, 1), IsEmpty());
    EXPECT_THAT(faults_of(comparison_of(0, 0), {}, 2), ElementsAre(HasSubstr("2 of 65")));
    Comparison four_slots = comparison_of(0, 0);
    four_slots.tokens = 260;
    EXPECT_THAT(faults_of(four_slots, {}, 4), IsEmpty());
    EXPECT_THAT(faults_of(four_slots, {}, 5), SizeIs(1));
    four_slots.ties = 200;
    EXPECT_THAT(faults_of(four_slots, {}, 2), ElementsAre(HasSubstr("2 of 60")));
}

TEST(VerifyFaults, NoNumbersAreFaults) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THAT(faults_of(comparison_of(nan, 0)), SizeIs(1));
    EXPECT_THAT(faults_of(comparison_of(0, nan)), SizeIs(1));
    Comparison partly = comparison_of(0, 0);
    partly.not_finite = 1;
    EXPECT_THAT(faults_of(partly), ElementsAre(HasSubstr("1 of 65")));
    partly.not_finite = 65;
    EXPECT_THAT(faults_of(partly), ElementsAre(HasSubstr("65 of 65")));
    EXPECT_THAT(faults_of(Comparison{}), ElementsAre(HasSubstr("no position")));
}

TEST(VerifyFaults, PerplexityThatTheDivergenceDoesNotExplain) {
    Comparison worse = comparison_of(0, 0);
    // 4 sqrt(2 * 0.0006 / 65) = 1.7 %
    worse.perplexity = 10 * std::exp(0.016);
    EXPECT_THAT(faults_of(worse), IsEmpty());
    worse.perplexity = 10 * std::exp(0.018);
    EXPECT_THAT(faults_of(worse), ElementsAre(HasSubstr("perplexity")));
    worse.perplexity = 10 * std::exp(-0.018);
    EXPECT_THAT(faults_of(worse), ElementsAre(HasSubstr("perplexity")));
    worse.perplexity = 0;
    EXPECT_THAT(faults_of(worse), SizeIs(1));
}

VerifyDevice split_device() {
    VerifyDevice device;
    device.label = "Tandem0";
    device.split = true;
    device.counters = [] { return std::vector<MemberTokens>{}; };
    return device;
}

TEST(SplitFaults, ASplitThatHappenedIsRight) {
    const std::vector<MemberTokens> tokens{{"Vulkan0", 0, 64}, {"CUDA0", 512, 0}};
    EXPECT_THAT(split_faults(split_device(), tokens, 576), IsEmpty());
}

TEST(SplitFaults, AnUnsplitRunDoesNotPassForASplitOne) {
    const std::vector<MemberTokens> tokens{{"Vulkan0", 512, 64}};
    EXPECT_THAT(split_faults(split_device(), tokens, 576),
                ElementsAre("a split was asked for but all tokens ran on Vulkan0"));
    const std::vector<MemberTokens> idle{{"Vulkan0", 512, 64}, {"CUDA0", 0, 0}};
    EXPECT_THAT(split_faults(split_device(), idle, 576), ElementsAre(HasSubstr("all tokens ran on Vulkan0")));
    EXPECT_THAT(split_faults(split_device(), {}, 0), ElementsAre(HasSubstr("no member")));
    VerifyDevice blind = split_device();
    blind.counters = nullptr;
    EXPECT_THAT(split_faults(blind, tokens, 576), ElementsAre(HasSubstr("nothing counts")));
    VerifyDevice unsplit = split_device();
    unsplit.split = false;
    EXPECT_THAT(split_faults(unsplit, tokens, 576), IsEmpty());
}

TEST(SplitFaults, TokensThatNobodyCountedAreNamed) {
    const std::vector<MemberTokens> tokens{{"Vulkan0", 0, 64}, {"CUDA0", 511, 0}};
    EXPECT_THAT(split_faults(split_device(), tokens, 576), ElementsAre(AllOf(HasSubstr("576"), HasSubstr("575"))));
}

TEST(TokensBetween, IsTheDifferenceByMember) {
    const std::vector<MemberTokens> before{{"a", 10, 5}, {"b", 1, 1}};
    const std::vector<MemberTokens> after{{"b", 1, 1}, {"a", 12, 9}, {"c", 0, 3}};
    const auto between = tokens_between(before, after);
    ASSERT_EQ(between.size(), 2u);
    EXPECT_EQ(between[0].member, "a");
    EXPECT_EQ(between[0].prefill, 2u);
    EXPECT_EQ(between[0].decode, 4u);
    EXPECT_EQ(between[1].member, "c");
    // counters that went back are not a large number
    EXPECT_THAT(tokens_between(after, before), IsEmpty());
}

VerifyReport report_of(std::vector<std::string> case_faults, std::vector<std::string> faults) {
    VerifyReport report;
    report.model = "model\x1b";
    report.tested = "Tandem0";
    report.reference = "Vulkan0";
    VerifyCase one;
    one.prompt = 33;
    one.slots = 4;
    one.tested = comparison_of(0.5, std::numeric_limits<double>::infinity());
    one.first_divergence = VerifyDivergence{2, 7};
    one.tokens = {{"CPU", 33, 0}, {"Vulkan0", 0, 64}};
    one.faults = std::move(case_faults);
    report.cases.push_back(one);
    report.tokens = one.tokens;
    report.faults = std::move(faults);
    return report;
}

TEST(VerifyReport, IsRightOnlyWithCasesAndWithoutFaults) {
    EXPECT_TRUE(report_of({}, {}).right());
    EXPECT_FALSE(report_of({"x"}, {}).right());
    EXPECT_FALSE(report_of({}, {"x"}).right());
    EXPECT_FALSE(VerifyReport{}.right());
    EXPECT_THAT(verify_to_text(VerifyReport{}), HasSubstr("nothing was compared"));
}

TEST(VerifyReport, TextSaysWhereItIsWrongAndWhereTokensRan) {
    const std::string text = verify_to_text(report_of({"mean KL 0.5 is above 0.0006"}, {"unsplit"}));
    EXPECT_THAT(text, AllOf(HasSubstr("WRONG  prompt 33, slots 4: mean KL"), HasSubstr("WRONG  unsplit"),
                            HasSubstr("CPU 33+0, Vulkan0 0+64"), HasSubstr("slot 2, token 7")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(verify_to_text(report_of({}, {})), HasSubstr("the same within the limits"));
}

TEST(VerifyReport, JsonIsValidWithInfiniteNumbersToo) {
    const auto json = nlohmann::json::parse(verify_to_json(report_of({"x"}, {})), nullptr, false);
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json["right"], false);
    EXPECT_TRUE(json["cases"][0]["tested"]["max_kl"].is_null());
    EXPECT_EQ(json["cases"][0]["first_divergence"]["token"], 7);
    EXPECT_EQ(json["cases"][0]["tokens"][1]["member"], "Vulkan0");
    EXPECT_EQ(json["tokens"][0]["prefill"], 33);
    EXPECT_TRUE(json["third"].is_null());
}

}  // namespace
}  // namespace onebit
