// Breaks when a request of llama.cpp's server never learns of its result, gets another's, or is not looked after in
// time.
#include "engine/response_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/request_hooks.h"
#include "server-queue.h"

namespace onebit {
namespace {

constexpr int kPatience = 60;  // seconds

struct Number final : server_task_result {
    Number(int id_task, int number) : value(number) { id = id_task; }
    json to_json() override { return value; }
    int value;
};

class ResponseWait : public ::testing::Test {
protected:
    ResponseWait() {
        use_response_wait();
        use_request_hooks();
    }
    void send(int id_task, int value) { queue.send(std::make_unique<Number>(id_task, value)); }
    // -1: the time was over.
    int receive(const std::unordered_set<int>& id_tasks, int limit = kPatience) {
        const server_task_result_ptr result = queue.recv_with_timeout(id_tasks, limit);
        return result ? result->to_json().get<int>() : -1;
    }
    server_response queue;
};

TEST_F(ResponseWait, what_is_there_is_taken_in_its_order) {
    queue.add_waiting_task_ids({1, 2});
    send(1, 10);
    send(2, 20);
    send(1, 11);
    EXPECT_EQ(receive({2}), 20);
    EXPECT_EQ(receive({1, 2}), 10);
    EXPECT_EQ(receive({1, 2}), 11);
    EXPECT_EQ(receive({1, 2}, 0), -1);
    send(3, 30);  // nobody waits for it
    EXPECT_EQ(receive({3}, 0), -1);
}

TEST_F(ResponseWait, each_of_many_gets_all_of_its_own_results) {
    constexpr int kRequests = 16, kResults = 300;
    for (int id = 0; id < kRequests; id++) queue.add_waiting_task_id(id);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int id = 0; id < kRequests; id++)
        threads.emplace_back([&, id] {
            for (int i = 0; i < kResults; i++)
                if (receive({id}) != id * kResults + i) wrong++;
        });
    for (int i = 0; i < kResults; i++)
        for (int id = 0; id < kRequests; id++) send(id, id * kResults + i);
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(ResponseWait, a_request_of_several_tasks_learns_of_each) {
    queue.add_waiting_task_ids({1, 2, 3});
    int sum = 0;
    std::thread waits([&] {
        for (int i = 0; i < 3; i++) sum += receive({1, 2, 3});
    });
    for (int id : {3, 1, 2}) send(id, id * 100);
    waits.join();
    EXPECT_EQ(sum, 600);
}

// API11: each result of another request once began the limit anew
TEST_F(ResponseWait, API11_results_of_others_do_not_put_off_the_end_of_the_wait) {
    queue.add_waiting_task_ids({1, 2});
    std::atomic<bool> over{false};
    std::thread busy([&] {
        while (!over) {
            send(2, 0);
            std::this_thread::yield();
        }
    });
    EXPECT_EQ(receive({1}, 1), -1);
    over = true;
    busy.join();
}

TEST_F(ResponseWait, two_queues_do_not_wake_for_each_other) {
    server_response other;
    queue.add_waiting_task_id(1);
    other.add_waiting_task_id(1);
    int mine = 0;
    std::thread waits([&] { mine = receive({1}); });
    other.send(std::make_unique<Number>(1, 5));
    send(1, 6);
    waits.join();
    EXPECT_EQ(mine, 6);
    EXPECT_EQ(other.recv_with_timeout({1}, kPatience)->to_json().get<int>(), 5);
}

}  // namespace
}  // namespace onebit
