// Breaks when a new connection has to wait behind idle ones, or a stop does not wait for what is running.
#include "server/supervisor/connection_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "server/supervisor/http_server.h"
#include "tests/server/supervisor_testing.h"

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

// Slow heads may hold most connections for the whole read time-out, but not the last quarter.
TEST(HttpServer, heads_that_never_end_do_not_keep_others_out) {
    HttpServer server(4);
    server.set_read_timeout_source([] { return std::chrono::hours(1); });
    server.Get("/x", [](const httplib::Request&, httplib::Response& response) { response.set_content("y", "a/b"); });
    auto port = server.bind("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.error().message();
    std::thread listener([&] { server.listen_after_bind(); });
    std::vector<std::unique_ptr<testing::RawClient>> slow;
    for (size_t i = 1; i <= 4; i++) {
        slow.push_back(std::make_unique<testing::RawClient>(*port));
        EXPECT_TRUE(slow.back()->send("GET /x HTTP/1.1\r\nHos"));
        EXPECT_TRUE(testing::wait_until([&] { return server.connections() == i; }));
    }
    testing::RawClient other(*port);
    EXPECT_TRUE(other.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(other.read_until("\r\n\r\ny")) << other.text;
    EXPECT_TRUE(slow.back()->read_to_end());
    EXPECT_TRUE(slow.back()->text.starts_with("HTTP/1.1 408")) << slow.back()->text;
    server.abort_connections();
    server.stop();
    listener.join();
}

}  // namespace
}  // namespace onebit
