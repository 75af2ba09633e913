// Breaks when a request that ends engines is sent to one after the other, or when an innocent one is refused for it.
#include "server/supervisor/fatal_requests.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace onebit {
namespace {

class FatalRequestsTest : public ::testing::Test {
protected:
    FatalRequests::Clock::time_point now{std::chrono::hours(1)};
    FatalRequests requests{[this] { return now; }};
    const FatalRequests::Key bad = FatalRequests::key_of("/completion", "{bad}");
    const FatalRequests::Key good = FatalRequests::key_of("/completion", "{good}");

    bool alone(const FatalRequests::Key& key, const std::string& engine, bool by_others = false) {
        return requests.begin(key, engine)->engine_ended(by_others);
    }
};

TEST_F(FatalRequestsTest, keys_differ_by_path_and_body) {
    EXPECT_NE(bad, good);
    EXPECT_NE(bad, FatalRequests::key_of("/v1/completions", "{bad}"));
    EXPECT_EQ(bad, FatalRequests::key_of("/completion", "{bad}"));
}

TEST_F(FatalRequestsTest, the_only_request_of_an_engine_that_ended_is_refused_at_once) {
    EXPECT_FALSE(requests.refused(bad));
    EXPECT_TRUE(alone(bad, "1"));
    EXPECT_EQ(requests.refused(bad), 1u);
    EXPECT_FALSE(requests.refused(good));
}

TEST_F(FatalRequestsTest, one_whose_engine_was_killed_is_refused_after_the_second_time) {
    EXPECT_FALSE(alone(bad, "1", true));
    EXPECT_FALSE(requests.refused(bad));
    EXPECT_TRUE(alone(bad, "2", true));
    EXPECT_EQ(requests.refused(bad), 2u);
}

TEST_F(FatalRequestsTest, among_others_it_takes_twice_in_a_row) {
    {
        auto first = requests.begin(bad, "1"), second = requests.begin(good, "1");
        EXPECT_FALSE(first->engine_ended(false));
        first.reset();
        // alone by now, but it was not when the engine ended
        EXPECT_FALSE(second->engine_ended(false));
    }
    requests.begin(good, "2")->answered();
    {
        auto first = requests.begin(bad, "2"), second = requests.begin(good, "2");
        EXPECT_TRUE(first->engine_ended(false));
        EXPECT_FALSE(second->engine_ended(false));
    }
    EXPECT_EQ(requests.refused(bad), 2u);
    EXPECT_FALSE(requests.refused(good));
}

TEST_F(FatalRequestsTest, the_same_request_twice_in_one_engine_is_one_request) {
    auto first = requests.begin(good, "1"), second = requests.begin(good, "1"), third = requests.begin(bad, "1");
    EXPECT_FALSE(first->engine_ended(false));
    EXPECT_FALSE(second->engine_ended(false));
    third.reset();
    first.reset();
    second.reset();
    auto twin = requests.begin(bad, "2"), other_twin = requests.begin(bad, "2");
    EXPECT_TRUE(twin->engine_ended(false));
    EXPECT_TRUE(other_twin->engine_ended(false));
    EXPECT_EQ(requests.refused(bad), 1u);
}

TEST_F(FatalRequestsTest, those_of_one_engine_run_one_at_a_time_until_they_are_answered) {
    using std::chrono::milliseconds, std::chrono::hours;
    const FatalRequests::Key fresh = FatalRequests::key_of("/completion", "{fresh}");
    {
        auto first = requests.begin(bad, "1"), second = requests.begin(good, "1");
        EXPECT_FALSE(first->engine_ended(false));
        EXPECT_FALSE(second->engine_ended(false));
    }
    auto turn = requests.wait_for_turn(bad, milliseconds(0));
    ASSERT_TRUE(turn);
    EXPECT_FALSE(requests.wait_for_turn(good, milliseconds(0))) << "the other one runs";
    EXPECT_FALSE(requests.wait_for_turn(good, hours(1), [] { return true; })) << "its client has left";
    ASSERT_TRUE(requests.wait_for_turn(fresh, milliseconds(0))) << "no suspect waits for none";
    {
        auto running = requests.begin(bad, "2", std::move(*turn));
        auto beside = requests.begin(fresh, "2");
        EXPECT_TRUE(running->engine_ended(false));
        EXPECT_FALSE(beside->engine_ended(false));
        EXPECT_FALSE(requests.wait_for_turn(good, milliseconds(0))) << "it is not over";
    }
    EXPECT_EQ(requests.refused(bad), 2u);
    EXPECT_FALSE(requests.refused(good));
    EXPECT_TRUE(requests.wait_for_turn(bad, milliseconds(0))) << "to be refused at once";
    turn = requests.wait_for_turn(good, milliseconds(0));
    ASSERT_TRUE(turn);
    EXPECT_FALSE(requests.wait_for_turn(fresh, milliseconds(0)));
    requests.begin(good, "3", std::move(*turn))->answered();
    // what was answered is no suspect any more
    turn = requests.wait_for_turn(fresh, milliseconds(0));
    ASSERT_TRUE(turn);
    EXPECT_TRUE(requests.wait_for_turn(good, milliseconds(0)));
    EXPECT_TRUE(requests.wait_for_turn(good, milliseconds(0)));
}

TEST_F(FatalRequestsTest, who_waits_is_woken_by_the_end_of_the_other_and_by_time) {
    {
        auto first = requests.begin(bad, "1"), second = requests.begin(good, "1");
        EXPECT_FALSE(first->engine_ended(true));
        EXPECT_FALSE(second->engine_ended(true));
    }
    auto turn = requests.wait_for_turn(bad, std::chrono::milliseconds(0));
    ASSERT_TRUE(turn);
    auto running = requests.begin(bad, "2", std::move(*turn));
    std::thread waits([&] { EXPECT_TRUE(requests.wait_for_turn(good, std::chrono::hours(1))); });
    running.reset();  // its client left: it stays a suspect, but its turn is over
    waits.join();
    turn = requests.wait_for_turn(bad, std::chrono::milliseconds(0));
    ASSERT_TRUE(turn);
    EXPECT_FALSE(requests.wait_for_turn(good, std::chrono::milliseconds(0)));
    now += FatalRequests::kKept;
    EXPECT_TRUE(requests.wait_for_turn(good, std::chrono::milliseconds(0))) << "it is forgotten";
}

TEST_F(FatalRequestsTest, one_that_left_before_the_end_is_no_suspect) {
    requests.begin(good, "1").reset();
    EXPECT_TRUE(alone(bad, "1"));
    EXPECT_FALSE(requests.refused(good));
}

TEST_F(FatalRequestsTest, it_is_forgotten_after_some_minutes) {
    EXPECT_TRUE(alone(bad, "1"));
    now += FatalRequests::kKept - std::chrono::seconds(1);
    EXPECT_TRUE(requests.refused(bad));
    now += std::chrono::seconds(1);
    EXPECT_FALSE(requests.refused(bad));
}

TEST_F(FatalRequestsTest, memory_is_bounded_and_the_oldest_goes_first) {
    std::vector<FatalRequests::Key> keys;
    for (size_t i = 0; i <= FatalRequests::kMost; i++) {
        keys.push_back(FatalRequests::key_of("/", std::to_string(i)));
        EXPECT_TRUE(alone(keys.back(), std::to_string(i)));
    }
    EXPECT_FALSE(requests.refused(keys[0]));
    for (size_t i = 1; i < keys.size(); i++) EXPECT_TRUE(requests.refused(keys[i])) << i;
}

}  // namespace
}  // namespace onebit
