// If this fails, requests are charged with tokens that others used, or a tandem keeps a member it was told to leave
// out.
#include "engine/tandem_account.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/tandem_device.h"

namespace onebit {
namespace {

TandemReport report(uint64_t a_prefill, uint64_t a_decode, uint64_t b_prefill, uint64_t b_decode) {
    TandemReport report;
    report.name = "Tandem0";
    report.members = {{"A", 0, 0, a_prefill, a_decode, 0, false}, {"B", 0, 0, b_prefill, b_decode, 0, false}};
    return report;
}

TEST(ShareOut, OneRequestGetsEverything) {
    std::map<int32_t, RequestAccount> accounts;
    TandemReport after = report(512, 3, 0, 7);
    after.handoffs = 2;
    after.handoff_us = 30;
    after.fallbacks = {{"op ADD", 4}};
    share_out(report(0, 0, 0, 0), after, {{5, 522}}, &accounts);
    ASSERT_EQ(accounts.size(), 1u);
    const RequestAccount& only = accounts[5];
    EXPECT_EQ(only.members.at("A").prefill_tokens, 512u);
    EXPECT_EQ(only.members.at("A").decode_tokens, 3u);
    EXPECT_EQ(only.members.at("B").decode_tokens, 7u);
    EXPECT_EQ(only.handoffs, 2u);
    EXPECT_EQ(only.handoff_us, 30u);
    EXPECT_EQ(only.fallbacks.at("op ADD"), 4u);
    EXPECT_FALSE(only.mixed);
}

TEST(ShareOut, ABatchOnOneMemberIsCountedExactly) {
    std::map<int32_t, RequestAccount> accounts;
    share_out(report(10, 0, 0, 5), report(10, 0, 0, 9), {{0, 1}, {1, 1}, {7, 2}}, &accounts);
    EXPECT_EQ(accounts[0].members.at("B").decode_tokens, 1u);
    EXPECT_EQ(accounts[1].members.at("B").decode_tokens, 1u);
    EXPECT_EQ(accounts[7].members.at("B").decode_tokens, 2u);
    EXPECT_FALSE(accounts[7].mixed);
    EXPECT_EQ(accounts[0].members.count("A"), 0u);
}

TEST(ShareOut, AMixedBatchIsSharedWholeAndMarked) {
    std::map<int32_t, RequestAccount> accounts;
    share_out(report(0, 0, 0, 0), report(512, 0, 0, 101), {{0, 3}, {1, 7}, {2, 603}}, &accounts);
    uint64_t prefill = 0, decode = 0;
    for (const auto& [sequence, account] : accounts) {
        EXPECT_TRUE(account.mixed);
        prefill += account.members.at("A").prefill_tokens;
        decode += account.members.at("B").decode_tokens;
    }
    EXPECT_EQ(prefill, 512u);
    EXPECT_EQ(decode, 101u);
    EXPECT_NEAR(static_cast<double>(accounts[2].members.at("A").prefill_tokens), 512.0 * 603 / 613, 1.0);
}

TEST(ShareOut, NothingIsNobodys) {
    std::map<int32_t, RequestAccount> accounts;
    share_out(report(1, 1, 1, 1), report(2, 2, 2, 2), {}, &accounts);
    EXPECT_TRUE(accounts.empty());
    share_out(report(1, 1, 1, 1), report(1, 1, 1, 1), {{0, 4}}, &accounts);
    EXPECT_TRUE(accounts[0].members.empty());
    // huge counts do not overflow
    share_out(report(0, 0, 0, 0), report(UINT64_MAX / 2, 0, 0, 0), {{0, 1}, {1, 999999}}, &accounts);
    EXPECT_EQ(accounts[0].members.at("A").prefill_tokens + accounts[1].members.at("A").prefill_tokens, UINT64_MAX / 2);
}

RemainingMembers remaining(const std::string& settings, const std::vector<ExcludedMember>& excluded) {
    auto parsed = tandem::parse_settings(settings);
    EXPECT_TRUE(parsed.ok());
    auto left = without_members(*parsed, excluded);
    EXPECT_TRUE(left.ok());
    return left.ok() ? *left : RemainingMembers{};
}

TEST(WithoutMembers, TheOtherDeviceWorksAlone) {
    const std::string two = "owner=Vulkan0,prefill=Vulkan0,decode=CUDA0";
    EXPECT_EQ(remaining(two, {}).alone, "");
    EXPECT_EQ(remaining(two, {{"HRX0", "no member"}}).alone, "");
    EXPECT_EQ(remaining(two, {{"CUDA0", "x"}}).alone, "Vulkan0");
    EXPECT_EQ(remaining(two, {{"Vulkan0", "x"}}).alone, "CUDA0") << "the owner's memory goes with it";
    EXPECT_EQ(remaining("owner=CPU,prefill=guest:CPU,decode=CPU", {{"CPU", "x"}}).alone, "CPU");
    EXPECT_EQ(remaining("owner=Vulkan0,prefill=CPU,decode=CPU", {{"Vulkan0", "x"}}).alone, "CPU");
}

TEST(WithoutMembers, OfThreeTwoStayATandem) {
    const std::string three = "owner=Vulkan0,prefill=HRX0,decode=CUDA0";
    EXPECT_EQ(remaining(three, {{"HRX0", "x"}}).alone, "");
    EXPECT_EQ(remaining(three, {{"HRX0", "x"}}).settings.prefill, "CUDA0");
    EXPECT_EQ(remaining(three, {{"CUDA0", "x"}}).settings.decode, "HRX0");
    EXPECT_EQ(remaining(three, {{"CUDA0", "x"}, {"HRX0", "y"}}).alone, "Vulkan0");
    EXPECT_EQ(remaining(three, {{"Vulkan0", "x"}}).alone, "CUDA0");
}

TEST(WithoutMembers, AllExcludedIsAnErrorWithTheReason) {
    auto left = without_members(*tandem::parse_settings("owner=Vulkan0,decode=CUDA0"),
                                {{"Vulkan0", "lost"}, {"CUDA0", "aborted"}});
    ASSERT_FALSE(left.ok());
    EXPECT_NE(left.error().message().find("CUDA0: aborted"), std::string::npos) << left.error().message();
}

TEST(HideExcludedBackends, OnlyWhenNothingElseOfTheBackendIsUsed) {
    ::unsetenv("GGML_DISABLE_VULKAN");
    hide_excluded_backends({{"Vulkan0", "x"}}, {"--onebit-tandem=prefill=Vulkan0,decode=CPU", "-devd", "Vulkan1"});
    EXPECT_EQ(std::getenv("GGML_DISABLE_VULKAN"), nullptr);
    hide_excluded_backends({{"CPU", "x"}}, {"--onebit-tandem=prefill=Vulkan0,decode=CPU"});
    EXPECT_EQ(std::getenv("GGML_DISABLE_VULKAN"), nullptr);
    hide_excluded_backends({{"Vulkan0", "x"}}, {"--onebit-tandem=prefill=Vulkan0,decode=CPU,min=1"});
    EXPECT_NE(std::getenv("GGML_DISABLE_VULKAN"), nullptr);
    ::unsetenv("GGML_DISABLE_VULKAN");
}

}  // namespace
}  // namespace onebit
