// If this fails, threads or queues of libhrx that wait for each other hang, or go on too early.
#include <atomic>
#include <thread>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(SemaphoreTest);

using Values = std::vector<hrx_semaphore_value>;

TEST_P(SemaphoreTest, CountsUpFromTheHost) {
    const Semaphore semaphore = must(device().create_semaphore(5));
    EXPECT_EQ(must(semaphore.query()), 5u);
    must(semaphore.wait(0, 0));
    must(semaphore.wait(5, 0));
    EXPECT_TRUE(fails(semaphore.wait(6, 0), ErrorCode::timeout, "value 6"));
    EXPECT_TRUE(fails(semaphore.wait(6, 1'000'000), ErrorCode::timeout));
    must(semaphore.signal(6));
    must(semaphore.wait(6));
    EXPECT_TRUE(fails(semaphore.signal(6), ErrorCode::usage, "above 6"));
    EXPECT_TRUE(fails(semaphore.signal(0), ErrorCode::usage));
    must(semaphore.signal(UINT64_MAX));
    must(semaphore.wait(UINT64_MAX));
    EXPECT_EQ(must(semaphore.query()), UINT64_MAX);
}

TEST_P(SemaphoreTest, ASubmissionSignals) {
    const Semaphore semaphore = must(device().create_semaphore());
    const Buffer data = zeros(64);
    const Program work = program();
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 1}));
    must(work.finish());
    for (uint64_t i = 1; i <= 50; ++i) must(queue().submit(work, {}, Values{at(semaphore, i * 10)}));
    must(semaphore.wait(491, patience));
    EXPECT_EQ(must(semaphore.query()), 500u);
    must(queue().wait_idle(patience));
}

TEST_P(SemaphoreTest, QueuesWaitForEachOther) {
    // two queues take turns on one value
    const Queue second = must(device().create_queue());
    const Semaphore turn = must(device().create_semaphore());
    const Buffer data = zeros(64);
    const Program even = program(), odd = program();
    must(dispatch(even, "cts_step", 1, {bind(data)}, {64, 1}));
    must(dispatch(odd, "cts_step", 1, {bind(data)}, {64, 2}));
    must(even.finish());
    must(odd.finish());
    uint32_t expected = 0;
    constexpr uint64_t turns = 200;
    for (uint64_t i = 0; i < turns; ++i) {
        must((i % 2 == 0 ? queue() : second)
                 .submit(i % 2 == 0 ? even : odd, Values{at(turn, i)}, Values{at(turn, i + 1)}));
        expected = expected * 3 + (i % 2 == 0 ? 1 : 2);
    }
    must(turn.wait(turns, patience));
    EXPECT_EQ(read(data, 64), std::vector<uint32_t>(64, expected));
    must(queue().wait_idle(patience));
    must(second.wait_idle(patience));
}

TEST_P(SemaphoreTest, ManyWaitsOfOneSubmission) {
    constexpr size_t count = 13;
    std::vector<Queue> queues;
    std::vector<Semaphore> semaphores;
    std::vector<Buffer> parts;
    std::vector<Program> programs;
    Values waits;
    for (uint32_t i = 0; i < count; ++i) {
        queues.push_back(must(device().create_queue()));
        semaphores.push_back(must(device().create_semaphore()));
        parts.push_back(zeros(64));
        programs.push_back(program());
        must(dispatch(programs.back(), "cts_index", 1, {bind(parts.back())}, {64, 1, i}));
        must(programs.back().finish());
        waits.push_back(at(semaphores.back(), 1));
    }
    const Buffer sum = zeros(64);
    const Program add = program();
    for (uint32_t i = 0; i < count; ++i) {
        must(dispatch(add, "cts_add", 1, {bind(sum), bind(sum), bind(parts[i])}, {64}));
        must(add.barrier());
    }
    must(add.finish());
    for (uint32_t i = 0; i < count; ++i) {
        must(queues[i].submit(programs[i], {}, Values{at(semaphores[i], 1)}));
    }
    must(queue().submit(add, waits, {}));
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(sum, 64)[2], 2 * count + count * (count - 1) / 2);
}

TEST_P(SemaphoreTest, AWaitMayBeSubmittedBeforeItsSignal) {
    const Semaphore go = must(device().create_semaphore()), done = must(device().create_semaphore());
    const Buffer data = zeros(64);
    const Program work = program();
    const uint32_t command = must(dispatch(work, "cts_index", 1, {bind(data)}, {64, 0, 1}));
    must(work.finish());
    must(queue().submit(work, Values{at(go, 1)}, Values{at(done, 1)}));
    // behind it on the queue, with other arguments and no wait of its own
    must(work.patch_constant(command, 8, uint32_t{2}));
    must(queue().submit(work, {}, Values{at(done, 2)}));
    EXPECT_TRUE(fails(done.wait(1, 1'000'000), ErrorCode::timeout));
    EXPECT_TRUE(fails(queue().wait_idle(1'000'000), ErrorCode::timeout, "2 submissions"));
    EXPECT_EQ(read(data, 64)[0], 0u);
    must(go.signal(1));
    must(done.wait(2, patience));
    EXPECT_EQ(read(data, 64)[0], 2u);
    must(queue().wait_idle(patience));
}

TEST_P(SemaphoreTest, HeldWorkKeepsTheArgumentsOfItsSubmit) {
    const Queue own = must(device().create_queue());
    const Semaphore go = must(device().create_semaphore()), done = must(device().create_semaphore());
    const Program work = program();
    std::vector<Buffer> targets;
    for (uint32_t i = 0; i < 10; ++i) targets.push_back(zeros(64));
    const uint32_t command = must(dispatch(work, "cts_index", 1, {bind(targets[0])}, {64, 1, 100}));
    must(work.finish());
    for (uint32_t i = 0; i < 10; ++i) {
        const hrx_patch patches[] = {{command, 0, bind(targets[i])}};
        must(work.patch(patches));
        must(work.patch_constant(command, 8, 100 + i));
        must(own.submit(work, Values{at(go, i + 1)}, Values{at(done, i + 1)}));
    }
    // the same program on another queue has to wait for those before it
    const Buffer last = zeros(64);
    const hrx_patch patches[] = {{command, 0, bind(last)}};
    must(work.patch(patches));
    must(queue().submit(work));
    EXPECT_TRUE(fails(queue().wait_idle(1'000'000), ErrorCode::timeout));
    must(go.signal(10));
    must(done.wait(10, patience));
    must(queue().wait_idle(patience));
    for (uint32_t i = 0; i < 10; ++i) ASSERT_EQ(read(targets[i], 64)[1], 101 + i);
    EXPECT_EQ(read(last, 64)[1], 110u);
}

TEST_P(SemaphoreTest, ThreadsWaitForTheDeviceAndEachOther) {
    constexpr uint32_t threads = 4, rounds = 40;
    const Semaphore ping = must(device().create_semaphore()), pong = must(device().create_semaphore());
    const Buffer data = zeros(64);
    const Program work = program();
    must(dispatch(work, "cts_step", 1, {bind(data)}, {64, 1}));
    must(work.finish());
    std::vector<std::jthread> waiting;
    std::atomic<uint32_t> seen{0};
    std::atomic<bool> failed{false};
    for (uint32_t t = 0; t < threads; ++t) {
        waiting.emplace_back([&] {
            for (uint64_t round = 1; round <= rounds; ++round) {
                if (!pong.wait(round, patience).ok()) failed = true;
                seen++;
            }
        });
    }
    std::jthread signalling([&] {
        for (uint64_t round = 1; round <= rounds; ++round) {
            if (!ping.signal(round).ok() || !pong.wait(round, patience).ok()) failed = true;
        }
    });
    for (uint64_t round = 1; round <= rounds; ++round) {
        must(queue().submit(work, Values{at(ping, round)}, Values{at(pong, round)}));
    }
    for (std::jthread& thread : waiting) thread.join();
    signalling.join();
    EXPECT_FALSE(failed);
    EXPECT_EQ(seen, threads * rounds);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < rounds; ++i) expected = expected * 3 + 1;
    EXPECT_EQ(read(data, 64)[0], expected);
    must(queue().wait_idle(patience));
}

TEST_P(SemaphoreTest, SubmissionsWithoutAProgram) {
    const Semaphore a = must(device().create_semaphore()), b = must(device().create_semaphore());
    must(queue().submit({}, Values{at(a, 1)}, Values{at(b, 1)}));
    must(queue().submit({}, {}, Values{at(b, 2), at(a, 5)}));
    must(a.signal(1));
    must(b.wait(2, patience));
    must(a.wait(5, patience));
    must(queue().wait_idle(patience));
}

TEST_P(SemaphoreTest, ValuesThatCannotBeSignalledAreRefused) {
    const Semaphore semaphore = must(device().create_semaphore(3)), go = must(device().create_semaphore());
    EXPECT_TRUE(fails(queue().submit({}, {}, Values{at(semaphore, 3)}), ErrorCode::usage, "above the reached 3"));
    EXPECT_TRUE(fails(queue().submit({}, {}, Values{at(semaphore, 4), at(semaphore, 4)}), ErrorCode::usage, "twice"));
    must(queue().submit({}, Values{at(go, 1)}, Values{at(semaphore, 7)}));
    EXPECT_TRUE(fails(queue().submit({}, {}, Values{at(semaphore, 7)}), ErrorCode::usage, "promised"));
    EXPECT_TRUE(fails(semaphore.signal(7), ErrorCode::usage, "below 7"));
    EXPECT_TRUE(fails(semaphore.signal(8), ErrorCode::usage, "below 7"));
    must(semaphore.signal(6));
    must(go.signal(1));
    must(semaphore.wait(7, patience));
    hrx_semaphore_value none{nullptr, 1};
    EXPECT_EQ(hrx_queue_submit(queue().get(), nullptr, &none, 1, nullptr, 0), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_queue_submit(queue().get(), nullptr, nullptr, 1, nullptr, 0), HRX_INVALID_ARGUMENT);
    must(queue().wait_idle(patience));
}

TEST_P(SemaphoreTest, WorkHeldBackIsCancelledWithItsQueue) {
    const Semaphore never = must(device().create_semaphore()), done = must(device().create_semaphore());
    {
        const Queue own = must(device().create_queue());
        must(own.submit({}, Values{at(never, 1)}, Values{at(done, 1)}));
    }
    EXPECT_TRUE(fails(done.wait(1, patience), ErrorCode::cancelled, "release"));
    EXPECT_TRUE(fails(done.query(), ErrorCode::cancelled));
    EXPECT_TRUE(fails(queue().submit({}, {}, Values{at(done, 2)}), ErrorCode::cancelled));
    must(never.signal(1));
}

TEST_P(SemaphoreTest, AWaitingThreadLearnsThatItsWorkWasCancelled) {
    const Semaphore never = must(device().create_semaphore()), done = must(device().create_semaphore());
    Queue own = must(device().create_queue());
    must(own.submit({}, Values{at(never, 1)}, Values{at(done, 1)}));
    std::jthread waiting([&] { EXPECT_TRUE(fails(done.wait(1), ErrorCode::cancelled)); });
    own = Queue();
    waiting.join();
}

}  // namespace
}  // namespace onebit::hrx::cts
