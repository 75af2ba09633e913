// If this fails, an engine is restarted without a member that did nothing wrong, or again and again with one that did.
#include "server/supervisor/member_failure.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

namespace onebit {
namespace {

// As waitpid reports it (wait(2): the low seven bits are the signal, the next eight the exit code).
constexpr int by_signal(int signal) { return signal; }
constexpr int by_exit(int code) { return code << 8; }

std::unique_ptr<HeartbeatPage> page_with(uint64_t running) {
    auto page = std::make_unique<HeartbeatPage>();
    TandemReport report;
    report.name = "Tandem0";
    report.members = {{"Vulkan0"}, {"CUDA0"}};
    write_tandem(page->tandem, report);
    page->running_member = running;
    return page;
}

TEST(MemberFailure, TheMemberAtWorkIsBlamedForWhatEndsAProcess) {
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        EXPECT_EQ(blamed_member(*page_with(2), {by_signal(signal), false, false, false}), "CUDA0") << signal;
    EXPECT_EQ(blamed_member(*page_with(1), {by_exit(1), false, false, false}), "Vulkan0");
    EXPECT_EQ(blamed_member(*page_with(1), {by_signal(SIGKILL), true, true, false}), "Vulkan0");
}

TEST(MemberFailure, NobodyIsBlamedForWhatOthersDid) {
    EXPECT_EQ(blamed_member(*page_with(0), {by_signal(SIGABRT), false, false, false}), "");
    EXPECT_EQ(blamed_member(*page_with(2), {by_exit(0), false, false, false}), "");
    EXPECT_EQ(blamed_member(*page_with(2), {by_signal(SIGTERM), false, false, false}), "");
    // DEV26: the kernel's OOM killer
    EXPECT_EQ(blamed_member(*page_with(2), {by_signal(SIGKILL), false, false, false}), "");
    EXPECT_EQ(blamed_member(*page_with(2), {by_signal(SIGKILL), true, false, false}), "") << "stop()";
    EXPECT_EQ(blamed_member(*page_with(2), {by_signal(SIGABRT), true, false, false}), "") << "at its end";
    EXPECT_EQ(blamed_member(*page_with(2), {by_signal(SIGKILL), true, true, true}), "") << "SIGSTOP";
}

TEST(MemberFailure, AnyPageIsReadWithoutHarm) {
    EXPECT_EQ(blamed_member(*page_with(3), {by_signal(SIGABRT), false, false, false}), "");
    EXPECT_EQ(blamed_member(*page_with(UINT64_MAX), {by_signal(SIGABRT), false, false, false}), "");
    EXPECT_EQ(blamed_member(HeartbeatPage{}, {by_signal(SIGABRT), false, false, false}), "");
    auto page = page_with(1);
    page->tandem.member_count = UINT64_MAX;
    for (auto& word : page->tandem.members[0].name) word = UINT64_MAX;
    EXPECT_FALSE(blamed_member(*page, {by_signal(SIGABRT), false, false, false}).empty());
}

TEST(MemberFailure, ArgumentsOfTheNextProcess) {
    EXPECT_TRUE(exclusion_arguments({}).empty());
    EXPECT_EQ(exclusion_arguments({{"CUDA0", "killed\nby signal 6"}, {"CPU", ""}}),
              (std::vector<std::string>{"--exclude-member", "CUDA0", "--reason", printable("killed\nby signal 6"),
                                        "--exclude-member", "CPU", "--reason", "none given"}));
    EXPECT_EQ(exclusion_arguments({{"CUDA0", std::string(100000, 'x')}})[3].size(), 300u);
}

TEST(TandemTable, WhatIsWrittenIsRead) {
    TandemTable table{};
    EXPECT_EQ(read_tandem(table), TandemReport{});
    TandemReport report{"Tandem0",  {{"Vulkan0", 9, 2, 512, 7, 1, false}, {"CUDA0", 1, 1, 3, 0, 3, true}},
                        0,          1,
                        0,          64,
                        4,          700,
                        1,          2,
                        UINT64_MAX, {{"op ADD (x)", 3}}};
    write_tandem(table, report);
    EXPECT_EQ(read_tandem(table), report);
    table.version = 7;  // a writer that died
    EXPECT_EQ(read_tandem(table).name, "");
    write_tandem(table, report);
    EXPECT_EQ(read_tandem(table), report);
}

TEST(TandemTable, MoreThanThereIsRoomForIsCountedTogether) {
    TandemTable table{};
    TandemReport report{
        "T", std::vector<TandemMember>(TandemTable::kMembers + 1, TandemMember{"m"}), 0, 0, 0, 1, 0, 0, 0, 0, 0, {}};
    for (size_t i = 0; i < TandemTable::kReasons + 3; i++) report.fallbacks.emplace_back(std::string(200, 'a'), 10);
    write_tandem(table, report);
    const TandemReport read = read_tandem(table);
    EXPECT_EQ(read.members.size(), TandemTable::kMembers);
    ASSERT_EQ(read.fallbacks.size(), TandemTable::kReasons);
    EXPECT_EQ(read.fallbacks[0].first, std::string(95, 'a'));
    EXPECT_EQ(read.fallbacks.back(), (std::pair<std::string, uint64_t>{"others", 40}));
}

}  // namespace
}  // namespace onebit
