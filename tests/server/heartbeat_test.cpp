// If this fails, a supervisor cannot trust what its engines show it: hangs are missed, or good engines are killed.
#include "server/supervisor/heartbeat.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "server/supervisor/engine_process.h"
#include "server/supervisor/hang_detector.h"

namespace onebit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Heartbeat new_page() { return std::move(Heartbeat::create().value()); }

TEST(Heartbeat, NewPageIsZeroAndInvisibleToOtherPrograms) {
    const Heartbeat heartbeat = new_page();
    EXPECT_EQ(heartbeat.page().graphs_begun, 0u);
    EXPECT_EQ(heartbeat.page().ready, 0u);
    EXPECT_TRUE(::fcntl(heartbeat.fd(), F_GETFD) & FD_CLOEXEC);
}

TEST(Heartbeat, AnotherProcessWritesWhatWeRead) {
    const Heartbeat heartbeat = new_page();
    const pid_t child = ::fork();
    if (child == 0) {
        auto mine = Heartbeat::attach(heartbeat.fd());
        if (!mine.ok()) ::_exit(1);
        mine->page().graphs_begun = 7;
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(heartbeat.page().graphs_begun, 7u);
}

TEST(Heartbeat, MovedFromPageIsNotUnmappedTwice) {
    Heartbeat first = new_page();
    first.page().graphs_done = 3;
    Heartbeat second = std::move(first);
    Heartbeat third = new_page();
    third = std::move(second);
    EXPECT_EQ(third.page().graphs_done, 3u);
}

TEST(Heartbeat, ChildCannotShrinkThePageUnderTheSupervisor) {
    const Heartbeat heartbeat = new_page();
    EXPECT_NE(::ftruncate(heartbeat.fd(), 0), 0);
    EXPECT_EQ(heartbeat.page().graphs_begun, 0u);
}

TEST(Heartbeat, AttachRefusesWhatIsNoPage) {
    EXPECT_EQ(Heartbeat::attach(-1).error().code, ErrorCode::invalid);
    EXPECT_EQ(Heartbeat::attach(999999).error().code, ErrorCode::invalid);
    const UniqueFd null(::open("/dev/null", O_RDWR));
    EXPECT_EQ(Heartbeat::attach(null.get()).error().code, ErrorCode::invalid);
    for (const off_t size : {off_t{0}, off_t{4095}, off_t{4096}, off_t{8192}}) {
        const UniqueFd file(::memfd_create("test", 0));
        ASSERT_EQ(::ftruncate(file.get(), size), 0);
        auto result = Heartbeat::attach(file.get());
        ASSERT_FALSE(result.ok()) << size;
        EXPECT_EQ(result.error().code, ErrorCode::invalid);
        EXPECT_NE(::fcntl(file.get(), F_GETFD), -1) << "closed a descriptor that it did not take";
    }
}

TEST(Heartbeat, AttachRefusesAnotherVersion) {
    const Heartbeat heartbeat = new_page();
    heartbeat.page().version += 1;
    const UniqueFd copy(::dup(heartbeat.fd()));
    EXPECT_EQ(Heartbeat::attach(copy.get()).error().code, ErrorCode::invalid);
}

TEST(HangTimeout, IsTwentyTimesTheLongestGraphAndNeverLessThanAsked) {
    EXPECT_EQ(hang_timeout(seconds(30), 0), seconds(30));
    EXPECT_EQ(hang_timeout(seconds(30), 1), seconds(30));
    EXPECT_EQ(hang_timeout(seconds(30), 1'499'999), seconds(30));
    EXPECT_EQ(hang_timeout(seconds(30), 1'500'000), seconds(30));
    EXPECT_EQ(hang_timeout(seconds(30), 2'000'000), seconds(40));
    EXPECT_EQ(hang_timeout(seconds(1), 600'000'000), seconds(12000));
    EXPECT_EQ(hang_timeout(seconds(1), UINT64_MAX), std::chrono::hours(24)) << "an absurd measurement";
}

TEST(HangTimeout, LargerGraphsThanMeasuredGetMoreTime) {
    const Heartbeat heartbeat = new_page();
    auto& page = heartbeat.page();
    page.longest_graph_us = 1'000'000;  // one token took a second
    page.longest_graph_work = 1000;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(20));
    page.graphs_begun = 1;
    page.open_work = 512'000;  // a prompt of 512 tokens
    EXPECT_EQ(present_limit(seconds(5), page), seconds(20 * 512));
    page.open_work = 10;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(20)) << "a smaller graph does not lower it";
    page.graphs_done = 1;
    page.open_work = 512'000;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(20)) << "no graph is open";
}

TEST(HangTimeout, FirstGraphOfItsKindGetsTenTimesTheLeast) {
    const Heartbeat heartbeat = new_page();
    auto& page = heartbeat.page();
    EXPECT_EQ(present_limit(seconds(5), page), seconds(5)) << "nothing runs";
    page.graphs_begun = 1;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(50)) << "nothing measured yet";
    page.longest_graph_us = 1000;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(5));
    page.pipelines = 1;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(50)) << "new pipelines in this graph";
    page.pipelines_at_done = 1;
    EXPECT_EQ(present_limit(seconds(5), page), seconds(5));
}

TEST(StallClock, AnySignOfLifeResetsIt) {
    const auto start = StallClock::Time{};
    uint64_t ProgressSigns::*const signs[] = {&ProgressSigns::graphs_begun, &ProgressSigns::graphs_done,
                                              &ProgressSigns::graph_steps,  &ProgressSigns::pipelines,
                                              &ProgressSigns::load_steps,   &ProgressSigns::disk_bytes,
                                              &ProgressSigns::answers};
    for (const auto sign : signs) {
        StallClock clock(seconds(2));
        ProgressSigns now;
        EXPECT_EQ(clock.observe(now, start), milliseconds(0));
        EXPECT_EQ(clock.observe(now, start + seconds(1)), seconds(1));
        EXPECT_EQ(clock.observe(now, start + seconds(2)), seconds(2));
        now.*sign += 1;
        EXPECT_EQ(clock.observe(now, start + seconds(3)), milliseconds(0));
        EXPECT_EQ(clock.observe(now, start + seconds(4)), seconds(1));
    }
}

TEST(StallClock, TimeInWhichNobodyLookedProvesNothing) {
    StallClock clock(seconds(2));
    const auto start = StallClock::Time{};
    clock.observe({}, start);
    EXPECT_EQ(clock.observe({}, start + std::chrono::hours(9)), seconds(2)) << "the supervisor itself was stopped";
    clock.reset();
    EXPECT_EQ(clock.observe({}, start + std::chrono::hours(10)), milliseconds(0));
}

TEST(RestartBackOff, DoublesToThirtySecondsAndForgetsAfterGoodService) {
    RestartBackOff back_off;
    EXPECT_EQ(back_off.next(milliseconds(0)), milliseconds(250));
    EXPECT_EQ(back_off.next(milliseconds(0)), milliseconds(500));
    EXPECT_EQ(back_off.next(milliseconds(59'999)), milliseconds(1000));
    for (int i = 0; i < 20; ++i) back_off.next(milliseconds(0));
    EXPECT_EQ(back_off.next(milliseconds(0)), milliseconds(30'000));
    EXPECT_EQ(back_off.next(milliseconds(60'000)), milliseconds(250));
}

}  // namespace
}  // namespace onebit
