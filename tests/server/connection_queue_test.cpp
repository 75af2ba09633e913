// Breaks when a new connection has to wait behind idle ones, or a stop does not wait for what is running.
#include "server/supervisor/connection_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace onebit {
namespace {

TEST(ConnectionQueue, every_job_has_a_thread_at_once_while_threads_may_be_made) {
    for (int round = 0; round < 20; round++) {
        ConnectionQueue queue(64);
        // each job needs all others to run
        std::latch all(64);
        for (int i = 0; i < 64; i++) ASSERT_TRUE(queue.enqueue([&] { all.arrive_and_wait(); }));
        all.wait();
    }
}

TEST(ConnectionQueue, more_jobs_than_threads_wait_and_are_all_done) {
    std::atomic<int> done{0}, running{0}, most{0};
    {
        ConnectionQueue queue(3);
        for (int i = 0; i < 200; i++)
            ASSERT_TRUE(queue.enqueue([&] {
                int now = ++running;
                int old = most;
                while (now > old && !most.compare_exchange_weak(old, now)) {
                }
                std::this_thread::yield();
                running--;
                done++;
            }));
        queue.shutdown();
        EXPECT_FALSE(queue.enqueue([] {}));
    }
    EXPECT_EQ(done, 200);
    EXPECT_LE(most, 3);
}

TEST(ConnectionQueue, stops_without_ever_having_worked) { ConnectionQueue queue(1); }

}  // namespace
}  // namespace onebit
