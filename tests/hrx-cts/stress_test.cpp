// If this fails, many threads that use one device of libhrx at once damage each other's work or hang.
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(StressTest);

// What went wrong first in any thread.
class Failure {
public:
    template <typename Body>
    void guard(Body&& body) {
        try {
            body();
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex_);
            if (text_.empty()) text_ = error.what();
        }
    }
    std::string text() {
        const std::lock_guard lock(mutex_);
        return text_;
    }

private:
    std::mutex mutex_;
    std::string text_;
};

void require(bool right, const char* what) {
    if (!right) throw std::runtime_error(what);
}

TEST_P(StressTest, ThreadsWithQueuesOfTheirOwn) {
    Failure failure;
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
            failure.guard([&] {
                const Queue own = must(device().create_queue());
                std::mt19937 random(t);
                for (int round = 0; round < 30; ++round) {
                    const uint32_t count = 64 * (1 + random() % 4);
                    const Buffer data = zeros(count);
                    const Program work = program();
                    uint32_t expected = 0;
                    for (uint32_t i = 0; i < 1 + random() % 8; ++i) {
                        must(dispatch(work, "cts_step", count / 64, {bind(data)}, {count, t + i}));
                        must(work.barrier());
                        expected = expected * 3 + t + i;
                    }
                    must(work.finish());
                    must(own.submit(work));
                    must(own.wait_idle(patience));
                    require(read(data, count) == std::vector<uint32_t>(count, expected), "wrong result");
                }
            });
        });
    }
    for (std::jthread& thread : threads) thread.join();
    EXPECT_EQ(failure.text(), "");
}

TEST_P(StressTest, ThreadsOnOneQueueProgramAndSemaphore) {
    constexpr uint32_t threads = 4, rounds = 100;
    const Buffer counter = zeros(1);
    const Program work = program();
    const uint32_t command = must(dispatch(work, "cts_count", 1, {bind(counter)}, {1}));
    must(work.finish());
    const Semaphore done = must(device().create_semaphore());
    std::atomic<uint64_t> next{0};
    std::mutex order;  // values must be submitted in a growing order
    Failure failure;
    std::vector<std::jthread> running;
    for (uint32_t t = 0; t < threads; ++t) {
        running.emplace_back([&] {
            failure.guard([&] {
                for (uint32_t i = 0; i < rounds; ++i) {
                    const hrx_patch patches[] = {{command, 0, bind(counter)}};
                    must(work.patch(patches));
                    uint64_t value = 0;
                    {
                        const std::lock_guard lock(order);
                        value = ++next;
                        const hrx_semaphore_value signals[] = {at(done, value)};
                        must(queue().submit(work, {}, signals));
                    }
                    if (i % 10 == 0) must(done.wait(value, patience));
                    must(done.query());
                }
            });
        });
    }
    for (std::jthread& thread : running) thread.join();
    EXPECT_EQ(failure.text(), "");
    must(done.wait(threads * rounds, patience));
    EXPECT_EQ(read(counter, 1).front(), threads * rounds * workgroup);
    must(queue().wait_idle(patience));
}

TEST_P(StressTest, ARingOfQueuesWithHostAndDeviceSignals) {
    constexpr uint32_t queues = 4;
    constexpr uint64_t laps = 60;
    std::vector<Queue> ring;
    std::vector<Semaphore> turns;
    std::vector<Program> programs;
    const Buffer data = zeros(64);
    for (uint32_t i = 0; i < queues; ++i) {
        ring.push_back(must(device().create_queue()));
        turns.push_back(must(device().create_semaphore()));
        programs.push_back(program());
        must(dispatch(programs.back(), "cts_step", 1, {bind(data)}, {64, i}));
        must(programs.back().finish());
    }
    // the last queue's work is submitted first: everything is held back until the host opens the ring
    for (uint32_t i = queues; i-- > 0;) {
        for (uint64_t lap = 1; lap <= laps; ++lap) {
            const hrx_semaphore_value waits[] = {at(turns[i], lap)};
            const hrx_semaphore_value signals[] = {i + 1 == queues ? at(turns[0], lap + 1) : at(turns[i + 1], lap)};
            must(ring[i].submit(programs[i], waits, signals));
        }
    }
    must(turns[0].signal(1));
    must(turns[0].wait(laps + 1, patience));
    uint32_t expected = 0;
    for (uint64_t lap = 0; lap < laps; ++lap) {
        for (uint32_t i = 0; i < queues; ++i) expected = expected * 3 + i;
    }
    EXPECT_EQ(read(data, 64), std::vector<uint32_t>(64, expected));
}

TEST_P(StressTest, AllocationFromManyThreads) {
    Failure failure;
    std::vector<std::jthread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            failure.guard([&] {
                std::mt19937 random(t + 100);
                std::vector<std::pair<Buffer, uint32_t>> held;
                for (uint32_t i = 0; i < 200; ++i) {
                    const uint32_t mark = random();
                    Buffer buffer = must(device().allocate(4 + random() % 100'000));
                    must(buffer.write(std::span(&mark, 1)));
                    held.emplace_back(std::move(buffer), mark);
                    if (held.size() < 20) continue;
                    const size_t at = random() % held.size();
                    require(read(held[at].first, 1).front() == held[at].second, "another buffer's bytes");
                    held.erase(held.begin() + static_cast<long>(at));
                }
            });
        });
    }
    for (std::jthread& thread : threads) thread.join();
    EXPECT_EQ(failure.text(), "");
}

TEST_P(StressTest, MoreWorkThanARingHolds) {
    // far more packets in flight than any queue has places
    const Buffer counter = zeros(1);
    const Program work = program();
    for (int i = 0; i < 1000; ++i) must(dispatch(work, "cts_count", 1, {bind(counter)}, {1}));
    must(work.finish());
    constexpr uint32_t submissions = 40;
    for (uint32_t i = 0; i < submissions; ++i) must(queue().submit(work));
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(counter, 1).front(), submissions * 1000 * workgroup);
}

}  // namespace
}  // namespace onebit::hrx::cts
