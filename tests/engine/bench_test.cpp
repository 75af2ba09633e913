// If this fails, bench and verify judge a device by wrong numbers: a broken device passes or a good one is blamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/bench.h"
#include "engine/compare.h"

namespace onebit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const float ln2 = std::log(2.0f);

TEST(CompareLogits, EqualLogitsDoNotDiffer) {
    const std::vector<float> logits{1, 2, 5, -3};
    const auto token = compare_logits(logits, logits, 2, 0.1);
    EXPECT_TRUE(token.finite);
    EXPECT_EQ(token.kl, 0);
    EXPECT_EQ(token.nll_reference, token.nll_tested);
    EXPECT_TRUE(token.same_top);
    EXPECT_FALSE(token.tie);
}

// p = (1/2, 1/2), q = (3/4, 1/4): KL = 1/2 ln(2/3) + 1/2 ln 2 = 1/2 ln(4/3)
TEST(CompareLogits, HandComputedDivergence) {
    const std::vector<float> p{0, 0}, q{std::log(3.0f), 0};
    const auto token = compare_logits(p, q, 1, 0.1);
    EXPECT_NEAR(token.kl, 0.5 * std::log(4.0 / 3.0), 1e-6);
    EXPECT_NEAR(token.nll_reference, std::log(2.0), 1e-6);
    EXPECT_NEAR(token.nll_tested, std::log(4.0), 1e-6);
    EXPECT_TRUE(token.tie);
}

TEST(CompareLogits, AShiftOfAllLogitsChangesNothing) {
    const std::vector<float> p{0, ln2, 2 * ln2}, q{1000, 1000 + ln2, 1000 + 2 * ln2};
    const auto token = compare_logits(p, q, 0, 0.1);
    EXPECT_NEAR(token.kl, 0, 1e-8);
    EXPECT_NEAR(token.nll_tested, std::log(7.0), 1e-4);
}

TEST(CompareLogits, ATieIsWithinTheMarginOnly) {
    const std::vector<float> other{0, 5};
    EXPECT_TRUE(compare_logits(std::vector<float>{1.0f, 1.24f}, other, 0, 0.25).tie);
    EXPECT_FALSE(compare_logits(std::vector<float>{1.0f, 1.26f}, other, 0, 0.25).tie);
    EXPECT_FALSE(compare_logits(std::vector<float>{9.0f, 1.0f}, other, 0, 0.25).same_top);
}

TEST(CompareLogits, OneTokenVocabulary) {
    const auto token = compare_logits(std::vector<float>{7}, std::vector<float>{-2}, 0, 0.1);
    EXPECT_TRUE(token.finite);
    EXPECT_EQ(token.kl, 0);
    EXPECT_TRUE(token.same_top);
    EXPECT_FALSE(token.tie);
}

TEST(CompareLogits, WhatIsNoNumberIsNoResult) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const std::vector<float> good{0, 1};
    for (const auto& bad : {std::vector<float>{nan, 1}, {0, nan}, {inf, 0}, {-inf, -inf}, {}, {0}, {0, 1, 2}}) {
        EXPECT_FALSE(compare_logits(good, bad, 0, 0.1).finite);
        EXPECT_FALSE(compare_logits(bad, good, 0, 0.1).finite);
    }
    EXPECT_FALSE(compare_logits(good, good, 2, 0.1).finite);
}

TEST(CompareLogits, AForbiddenTokenIsFine) {
    const float inf = std::numeric_limits<float>::infinity();
    const auto token = compare_logits(std::vector<float>{-inf, 0, 0}, std::vector<float>{-inf, 0, 0}, 1, 0.1);
    EXPECT_TRUE(token.finite);
    EXPECT_EQ(token.kl, 0);
}

TEST(Comparison, HandComputedSums) {
    ComparisonSum sum;
    sum.add({true, 0.1, std::log(2.0), std::log(4.0), false, true});
    sum.add({true, 0.3, std::log(8.0), std::log(4.0), false, false});
    sum.add({true, 0.2, std::log(4.0), std::log(4.0), true, false});
    const Comparison result = sum.result();
    EXPECT_EQ(result.tokens, 3u);
    EXPECT_EQ(result.ties, 1u);
    EXPECT_NEAR(result.mean_kl, 0.2, 1e-12);
    EXPECT_NEAR(result.max_kl, 0.3, 1e-12);
    EXPECT_NEAR(result.top1_agreement, 0.5, 1e-12);
    EXPECT_NEAR(result.perplexity_reference, 4, 1e-9);
    EXPECT_NEAR(result.perplexity, 4, 1e-9);
}

Comparison good_comparison() {
    Comparison result;
    result.tokens = 100;
    result.perplexity_reference = 10;
    result.perplexity = 10.05;
    result.mean_kl = 0.001;
    result.top1_agreement = 0.99;
    return result;
}

TEST(Faults, GoodHasNone) { EXPECT_THAT(faults(good_comparison(), {}), IsEmpty()); }

TEST(Faults, EachLimitIsNamedWithItsNumber) {  // PD07
    Comparison bad = good_comparison();
    bad.perplexity = 10.2;
    EXPECT_THAT(faults(bad, {}), ElementsAre(HasSubstr("perplexity 10.2 is not within 1 % of 10")));
    bad.perplexity = 9.8;
    EXPECT_THAT(faults(bad, {}), SizeIs(1)) << "better than the reference is wrong too";
    bad = good_comparison();
    bad.mean_kl = 1;
    EXPECT_THAT(faults(bad, {}), ElementsAre(HasSubstr("mean KL 1 is above")));
    bad = good_comparison();
    bad.top1_agreement = 0.5;
    EXPECT_THAT(faults(bad, {}), ElementsAre(HasSubstr("top-1 agreement 0.5 is below")));
}

TEST(Faults, NanAndNothingAreFaults) {
    EXPECT_THAT(faults(Comparison{}, {}), ElementsAre("no token was compared"));
    Comparison bad = good_comparison();
    bad.mean_kl = bad.perplexity = bad.top1_agreement = std::nan("");
    EXPECT_THAT(faults(bad, {}), SizeIs(3));
    bad = good_comparison();
    bad.not_finite = 1;
    EXPECT_THAT(faults(bad, {}), ElementsAre(HasSubstr("1 of 100 positions")));
    bad.not_finite = 100;
    EXPECT_THAT(faults(bad, {}), SizeIs(1));
}

TEST(Spread, MedianAndQuartiles) {
    EXPECT_EQ(spread_of({}).count, 0u);
    EXPECT_EQ(spread_of({7}).median, 7);
    EXPECT_EQ(spread_of({7}).lower_quartile, 7);
    const Spread spread = spread_of({5, 1, 4, 2, 3});
    EXPECT_EQ(spread.median, 3);
    EXPECT_EQ(spread.lower_quartile, 2);
    EXPECT_EQ(spread.upper_quartile, 4);
    EXPECT_EQ(spread.least, 1);
    EXPECT_EQ(spread.most, 5);
    EXPECT_EQ(spread_of({1, 2}).median, 1.5);
}

BenchReport sample_report() {
    BenchReport report;
    report.model = "a <model> & \"more\".gguf";
    report.devices = {"CPU", "Vulkan0"};
    report.conditions = {{"ubatch", "512"}, {"device", "Vulkan0 (GPU <1>, 0000:01:00.0)"}};
    report.cells = {{"CPU", BenchPhase::prefill, 512, 0, {100, 110, 120}},
                    {"Vulkan0", BenchPhase::prefill, 512, 0, {1000, 1100, 1200}},
                    {"CPU", BenchPhase::decode, 32, 1024, {5, 6, 7}},
                    {"Vulkan0", BenchPhase::decode, 32, 1024, {50, 60, 70}}};
    report.checks = {{"Vulkan0", good_comparison(), {}}};
    report.served = {{"Vulkan0", 16, 128, 32, {400, 420, 410}, {25.5, 26.5}, {80, 90, 100}}};
    report.checked_window = 1536;
    return report;
}

TEST(BenchReport, ACorrectnessColumnInEveryForm) {  // PD07
    BenchReport report = sample_report();
    EXPECT_TRUE(report.right());
    EXPECT_THAT(bench_to_text(report), HasSubstr("reference"));
    EXPECT_THAT(bench_to_markdown(report),
                HasSubstr("| Vulkan0 | prefill | 512 | 0 | 1100 | 1050-1150 | 1000-1200 | yes |"));
    report.checks[0].faults = {"mean KL 3 is above 0.02"};
    EXPECT_FALSE(report.right());
    EXPECT_THAT(bench_to_text(report), HasSubstr("WRONG  Vulkan0: mean KL 3 is above 0.02"));
    EXPECT_THAT(bench_to_markdown(report), HasSubstr("1000-1200 | NO |"));
    EXPECT_THAT(bench_to_svg(report), HasSubstr("WRONG RESULTS"));
    report.checks.clear();
    EXPECT_THAT(bench_to_markdown(report), HasSubstr("1000-1200 | not checked |"));
}

TEST(BenchReport, JsonHasConditionsAndSamples) {  // PF15
    BenchReport report = sample_report();
    report.checks[0].comparison.mean_kl = std::nan("");
    const auto json = nlohmann::json::parse(bench_to_json(report));
    EXPECT_EQ(json["conditions"][0]["name"], "ubatch");
    EXPECT_EQ(json["results"][1]["tokens_per_second"], 1100);
    EXPECT_THAT(json["results"][1]["samples"], SizeIs(3));
    EXPECT_TRUE(json["checks"][0]["mean_kl"].is_null());
}

TEST(BenchReport, WhatClientsGotIsInEveryForm) {  // PF15
    BenchReport report = sample_report();
    EXPECT_THAT(bench_to_text(report), HasSubstr("Through 1bit serve"));
    EXPECT_THAT(bench_to_markdown(report),
                HasSubstr("| Vulkan0 | 16 | 128 | 32 | 410 | 400-420 | 26.0 | 90.0 | yes |"));
    const auto json = nlohmann::json::parse(bench_to_json(report));
    ASSERT_THAT(json["served"], SizeIs(1));
    EXPECT_EQ(json["served"][0]["clients"], 16);
    EXPECT_EQ(json["served"][0]["tokens_per_second"], 410);
    EXPECT_EQ(json["served"][0]["first_token_ms"], 90);
    report.served.clear();
    EXPECT_THAT(bench_to_text(report), Not(HasSubstr("Through")));
    EXPECT_THAT(bench_to_markdown(report), Not(HasSubstr("Through")));
}

TEST(BenchReport, PlotEscapesNamesAndStaysInItsFrame) {
    const std::string svg = bench_to_svg(sample_report());
    EXPECT_THAT(svg, HasSubstr("a &lt;model&gt; &amp; &quot;more&quot;.gguf"));
    EXPECT_THAT(svg, HasSubstr("Vulkan0 (GPU &lt;1&gt;, 0000:01:00.0)"));
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("\"-"), std::string::npos) << "a coordinate below zero";
}

TEST(BenchReport, EmptyAndOddValuesDoNotBreakThePlot) {
    EXPECT_THAT(bench_to_svg(BenchReport{}), HasSubstr("not measured"));
    BenchReport report = sample_report();
    report.cells = {{"Vulkan0", BenchPhase::decode, 1, 0, {}},
                    {"Vulkan0", BenchPhase::decode, 2, 0, {std::numeric_limits<double>::infinity()}},
                    {"CPU", BenchPhase::decode, 3, 0, {1e-12}}};
    EXPECT_THAT(bench_to_svg(report), HasSubstr("</svg>"));
    EXPECT_THAT(bench_to_text(report), HasSubstr("Vulkan0"));
}

TEST(HeldOutText, IsInTheProgram) {
    const std::string text = held_out_text();
    EXPECT_GT(text.size(), 10000u);
    EXPECT_EQ(text.find('\0'), std::string::npos);
}

}  // namespace
}  // namespace onebit
