// If this fails, releasing objects of libhrx in some order frees what is in use, or keeps what is not.
#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(LifetimeTest);

TEST_P(LifetimeTest, ParentsMayBeReleasedFirst) {
    Buffer buffer;
    Program work;
    Queue own;
    Semaphore done;
    {
        Device other = must(Device::open(GetParam().c_str(), 0));
        Executable loaded = must(other.load(kernel_image(info().architecture)));
        buffer = must(other.allocate(256));
        work = must(other.create_program());
        own = must(other.create_queue());
        done = must(other.create_semaphore());
        const hrx_binding binding = bind(buffer);
        const uint32_t constants[] = {64, 2, 1};
        hrx_dispatch call{};
        call.executable = loaded.get();
        call.kernel = must(loaded.find("cts_index"));
        for (int i = 0; i < 3; ++i) call.workgroup_count[i] = call.workgroup_size[i] = 1;
        call.workgroup_size[0] = 64;
        call.bindings = &binding;
        call.binding_count = 1;
        call.constants = constants;
        call.constant_bytes = sizeof constants;
        must(work.dispatch(call));
        must(work.finish());
    }
    // device and executable live on through the program
    const hrx_semaphore_value signals[] = {at(done, 1)};
    must(own.submit(work, {}, signals));
    own = Queue();
    work = Program();
    must(done.wait(1, patience));
    EXPECT_EQ(must(buffer.read<uint32_t>(64))[63], 127u);
    done = Semaphore();
    buffer = Buffer();
}

TEST_P(LifetimeTest, WorkInFlightKeepsItsProgramAndBuffers) {
    const Buffer counter = zeros(1);
    for (int i = 0; i < 100; ++i) {
        const Buffer scratch = zeros(64);
        const Program work = program();
        must(dispatch(work, "cts_busy", 1, {bind(scratch)}, {500, 1}));
        must(work.barrier());
        must(dispatch(work, "cts_count", 1, {bind(counter)}, {1}));
        must(work.finish());
        must(queue().submit(work));
        // program and scratch are released here, while they run
    }
    must(queue().wait_idle(patience));
    EXPECT_EQ(read(counter, 1).front(), 100u * workgroup);
}

TEST_P(LifetimeTest, AQueueWaitsForItsWorkWhenReleased) {
    const Buffer counter = zeros(1);
    const Program work = program();
    must(dispatch(work, "cts_count", 1, {bind(counter)}, {1}));
    must(work.finish());
    {
        const Queue own = must(device().create_queue());
        for (int i = 0; i < 50; ++i) must(own.submit(work));
    }
    EXPECT_EQ(read(counter, 1).front(), 50u * workgroup);
}

TEST_P(LifetimeTest, HandlesAreCounted) {
    const Buffer buffer = zeros(64);
    hrx_buffer* raw = buffer.get();
    for (int i = 0; i < 1000; ++i) hrx_buffer_retain(raw);
    for (int i = 0; i < 1000; ++i) hrx_buffer_release(raw);
    EXPECT_EQ(hrx_buffer_size(raw), 256u);
    hrx_device_release(nullptr);
    hrx_buffer_release(nullptr);
    hrx_executable_release(nullptr);
    hrx_program_release(nullptr);
    hrx_queue_release(nullptr);
    hrx_semaphore_release(nullptr);
}

TEST_P(LifetimeTest, UnfinishedAndUnusedObjectsGoAway) {
    for (int i = 0; i < 50; ++i) {
        const Program recording = program();
        must(dispatch(recording, "cts_step", 1, {bind(zeros(64))}, {64, 1}));
        const Program finished = program();
        must(dispatch(finished, "cts_step", 1, {bind(zeros(64))}, {64, 1}));
        must(finished.finish());
        const Semaphore semaphore = must(device().create_semaphore(3));
        const Executable loaded = must(load_kernels());
    }
}

TEST_P(LifetimeTest, MemoryComesBack) {
    const uint64_t size = std::min<uint64_t>(info().max_buffer_bytes, uint64_t{256} << 20);
    const uint64_t times = 4 * (info().memory_bytes / size + 1);
    for (uint64_t i = 0; i < std::min<uint64_t>(times, 4096); ++i) {
        ASSERT_TRUE(device().allocate(size).ok()) << i << ": " << hrx_error_message();
    }
}

TEST_P(LifetimeTest, DevicesOpenAndCloseAgainAndAgain) {
    for (int i = 0; i < 20; ++i) {
        const Device other = must(Device::open(GetParam().c_str(), 0));
        const Queue own = must(other.create_queue());
        must(own.submit({}));
        must(own.wait_idle(patience));
    }
}

TEST_P(LifetimeTest, RecordingAndSubmittingHaveTheirTime) {
    const Program work = program();
    EXPECT_TRUE(fails(queue().submit(work), ErrorCode::conflict, "hrx_program_finish"));
    must(work.finish());
    EXPECT_TRUE(fails(work.finish(), ErrorCode::conflict, "finished"));
    EXPECT_TRUE(fails(work.barrier(), ErrorCode::conflict));
    EXPECT_TRUE(fails(work.fill(zeros(1), 0, 4, 0), ErrorCode::conflict));
    EXPECT_TRUE(fails(dispatch(work, "cts_step", 1, {bind(zeros(64))}, {64, 1}), ErrorCode::conflict));
    must(queue().submit(work));
    must(queue().wait_idle(patience));
}

}  // namespace
}  // namespace onebit::hrx::cts
