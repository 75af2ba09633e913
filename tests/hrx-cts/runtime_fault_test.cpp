// If this fails, an error of a driver is lost on the way to the caller, or leaves libhrx with work that never ends.
#include <thread>

#include "hrx/runtime/hrx.hpp"
#include "tests/hrx-cts/cts.h"
#include "tests/hrx-cts/fake_driver.h"

namespace onebit::hrx {
namespace {

using cts::fails;
using onebit::must;
using runtime::fake;

using Values = std::vector<hrx_semaphore_value>;

class RuntimeFaultTest : public testing::Test {
protected:
    RuntimeFaultTest() {
        runtime::add_fake_driver();
        fake().fail_allocate = fake().fail_record = fake().fail_submit = fake().fail_channel = false;
        fake().finish_at_once = true;
        device_ = must(Device::open("fake", 0));
    }
    ~RuntimeFaultTest() override {
        fake().finish_all();
        device_ = Device();
        EXPECT_EQ(fake().live_devices, 0);
        EXPECT_EQ(fake().live_memory, 0);
        EXPECT_EQ(fake().live_recordings, 0);
        EXPECT_EQ(fake().live_images, 0);
    }
    Program finished_program() {
        Program program = must(device_.create_program());
        must(program.finish());
        return program;
    }
    Device device_;
};

TEST_F(RuntimeFaultTest, MessagesNameTheCallAndItsResult) {
    fake().fail_allocate = true;
    const auto refused = device_.allocate(100);
    EXPECT_TRUE(fails(refused, ErrorCode::no_space, "fakeAlloc"));
    EXPECT_TRUE(fails(refused, ErrorCode::no_space, "FAKE_FULL (2)"));
    hrx_buffer* untouched = nullptr;
    EXPECT_EQ(hrx_buffer_allocate(device_.get(), HRX_MEMORY_DEVICE, 0, 100, &untouched), HRX_OUT_OF_MEMORY);
    EXPECT_EQ(untouched, nullptr);
    fake().fail_channel = true;
    EXPECT_TRUE(fails(device_.create_queue(), ErrorCode::io, "fakeQueue: expected FAKE_SUCCESS, found FAKE_BROKEN"));
    uint64_t bytes = 0;
    EXPECT_EQ(hrx_device_free_memory(device_.get(), &bytes), HRX_DRIVER_ERROR);
}

TEST_F(RuntimeFaultTest, TheMessageIsOfTheThreadThatFailed) {
    EXPECT_TRUE(fails(device_.allocate(0), ErrorCode::usage, "at least 1"));
    std::thread([&] {
        EXPECT_STREQ(hrx_error_message(), "");
        EXPECT_TRUE(fails(Device::open("nothing", 0), ErrorCode::not_found, "nothing"));
    }).join();
    EXPECT_NE(std::string(hrx_error_message()).find("at least 1"), std::string::npos);
}

TEST_F(RuntimeFaultTest, ADeviceWithoutBuiltInKernelsSaysSo) {
    const Buffer buffer = must(device_.allocate(64));
    const Program program = must(device_.create_program());
    EXPECT_TRUE(fails(program.fill(buffer, 0, 64, 1), ErrorCode::unsupported, "an image for fake"));
    EXPECT_TRUE(fails(program.timestamp(), ErrorCode::unsupported));
    EXPECT_EQ(hrx_program_command_count(program.get()), 0u);
}

TEST_F(RuntimeFaultTest, AFailedFinishCanBeTriedAgain) {
    const Program program = must(device_.create_program());
    fake().fail_record = true;
    EXPECT_TRUE(fails(program.finish(), ErrorCode::io, "fakeRecord"));
    fake().fail_record = false;
    EXPECT_TRUE(program.finish().ok());
}

TEST_F(RuntimeFaultTest, AFailedSubmitPromisesNothing) {
    const Queue queue = must(device_.create_queue());
    const Semaphore done = must(device_.create_semaphore());
    fake().fail_submit = true;
    EXPECT_TRUE(fails(queue.submit(finished_program(), {}, Values{at(done, 1)}), ErrorCode::io, "fakeSubmit"));
    fake().fail_submit = false;
    EXPECT_TRUE(fails(done.wait(1, 0), ErrorCode::timeout));
    // the value is free for another submission
    must(queue.submit(finished_program(), {}, Values{at(done, 1)}));
    must(done.wait(1));
    must(queue.wait_idle());
}

TEST_F(RuntimeFaultTest, ALostDeviceEndsAllWaits) {
    fake().finish_at_once = false;
    const Queue queue = must(device_.create_queue());
    const Semaphore done = must(device_.create_semaphore());
    const Program program = finished_program();
    must(queue.submit(program, {}, Values{at(done, 1)}));
    must(queue.submit(program, Values{at(done, 1)}, Values{at(done, 2)}));
    std::thread waiting([&] { EXPECT_TRUE(fails(done.wait(2), ErrorCode::cancelled, "FAKE_LOST")); });
    std::thread idle([&] { EXPECT_TRUE(fails(queue.wait_idle(), ErrorCode::cancelled, "FAKE_LOST")); });
    fake().lose_all();
    waiting.join();
    idle.join();
    EXPECT_TRUE(fails(queue.submit(program), ErrorCode::cancelled, "FAKE_LOST"));
    EXPECT_TRUE(fails(done.signal(9), ErrorCode::cancelled));
    EXPECT_TRUE(fails(done.query(), ErrorCode::cancelled));
    EXPECT_TRUE(done.wait(0).ok()) << "what was reached stays reached";
}

TEST_F(RuntimeFaultTest, AHeldSubmissionThatFailsTellsItsWaiters) {
    const Queue queue = must(device_.create_queue());
    const Semaphore go = must(device_.create_semaphore()), done = must(device_.create_semaphore());
    must(queue.submit(finished_program(), Values{at(go, 1)}, Values{at(done, 1)}));
    fake().fail_submit = true;
    must(go.signal(1));
    EXPECT_TRUE(fails(done.wait(1), ErrorCode::io, "fakeSubmit"));
    EXPECT_TRUE(fails(queue.wait_idle(), ErrorCode::io, "fakeSubmit"));
}

TEST_F(RuntimeFaultTest, FailureSpreadsToWhatWaitsForIt) {
    fake().finish_at_once = false;
    const Queue first = must(device_.create_queue()), second = must(device_.create_queue());
    const Semaphore go = must(device_.create_semaphore()), a = must(device_.create_semaphore()),
                    b = must(device_.create_semaphore());
    must(first.submit({}, Values{at(go, 1)}, Values{at(a, 1)}));
    must(second.submit({}, Values{at(a, 1)}, Values{at(b, 1)}));
    fake().fail_submit = true;
    must(go.signal(1));
    EXPECT_TRUE(fails(b.wait(1), ErrorCode::io, "fakeSubmit"));
}

// The device never comes past a wait for work that is lost, and says nothing of it.
TEST_F(RuntimeFaultTest, WorkOnTheDeviceThatWaitsForLostWorkIsLostToo) {
    fake().finish_at_once = false;
    const Queue first = must(device_.create_queue()), second = must(device_.create_queue()),
                third = must(device_.create_queue()), apart = must(device_.create_queue());
    const Semaphore a = must(device_.create_semaphore()), b = must(device_.create_semaphore());
    const Program program = finished_program();
    must(first.submit(program, {}, Values{at(a, 1)}));
    fake().mark_open();  // the submission of the first queue only
    must(second.submit({}, Values{at(a, 1)}, Values{at(b, 1)}));
    must(third.submit({}, Values{at(b, 1)}, {}));
    must(apart.submit({}));
    fake().lose_marked();
    EXPECT_TRUE(fails(third.wait_idle(), ErrorCode::cancelled, "FAKE_LOST"));
    EXPECT_TRUE(fails(second.wait_idle(), ErrorCode::cancelled, "FAKE_LOST"));
    // work that has nothing to do with it goes on, but not the program
    EXPECT_TRUE(fails(apart.submit(program), ErrorCode::cancelled, "record it again"));
    fake().finish_all();
    must(apart.wait_idle());
}

TEST_F(RuntimeFaultTest, AProgramThatFollowsItselfOnAnotherQueueIsLostWithIt) {
    fake().finish_at_once = false;
    const Queue first = must(device_.create_queue()), second = must(device_.create_queue());
    const Program program = finished_program();
    must(first.submit(program));
    fake().mark_open();
    must(second.submit(program));
    fake().lose_marked();
    EXPECT_TRUE(fails(first.wait_idle(), ErrorCode::cancelled, "FAKE_LOST"));
    EXPECT_TRUE(fails(second.wait_idle(), ErrorCode::cancelled, "record it again"));
}

TEST_F(RuntimeFaultTest, BuffersOfHeldWorkThatIsLostStayForThoseBefore) {
    fake().finish_at_once = false;
    const Executable executable = must(device_.load(std::vector<std::byte>(16)));
    const Program program = must(device_.create_program());
    const Queue first = must(device_.create_queue());
    Queue second = must(device_.create_queue());
    const Semaphore never = must(device_.create_semaphore());
    {
        const Buffer old = must(device_.allocate(64));
        const hrx_binding binding = bind(old);
        hrx_dispatch call{};
        call.executable = executable.get();
        call.kernel = must(executable.find("any"));
        for (int i = 0; i < 3; ++i) call.workgroup_count[i] = call.workgroup_size[i] = 1;
        call.bindings = &binding;
        call.binding_count = 1;
        must(program.dispatch(call));
        must(program.finish());
        must(first.submit(program));
        const Buffer fresh = must(device_.allocate(64));
        const hrx_patch patches[] = {{0, 0, bind(fresh)}};
        must(program.patch(patches));
        must(second.submit(program, Values{at(never, 1)}));
    }
    EXPECT_EQ(fake().live_memory, 2);
    second = Queue();  // cancels what it held; the first submission still runs with the old buffer
    EXPECT_EQ(fake().live_memory, 2);
    fake().finish_all();
    must(first.wait_idle());
}

TEST_F(RuntimeFaultTest, NullsAreRefusedEverywhere) {
    hrx_device_info info{};
    uint32_t index = 0;
    uint64_t value = 0;
    void* pointer = nullptr;
    EXPECT_EQ(hrx_device_open(nullptr, 0, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_device_open("fake", 0, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_device_count("fake", nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_device_get_info(nullptr, &info), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_device_get_info(device_.get(), nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_device_free_memory(nullptr, &value), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_buffer_allocate(nullptr, HRX_MEMORY_DEVICE, 0, 1, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_buffer_map(nullptr, &pointer), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_buffer_size(nullptr), 0u);
    EXPECT_EQ(hrx_buffer_address(nullptr), 0u);
    EXPECT_EQ(hrx_executable_load(device_.get(), nullptr, 10, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_executable_find(nullptr, "k", &index), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_program_create(device_.get(), 1u << 20, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_program_dispatch(nullptr, nullptr, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_program_finish(nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_program_patch(nullptr, nullptr, 0), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_program_command_count(nullptr), 0u);
    EXPECT_EQ(hrx_semaphore_create(nullptr, 0, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_semaphore_wait(nullptr, 0, 0), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_queue_create(nullptr, nullptr), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_queue_submit(nullptr, nullptr, nullptr, 0, nullptr, 0), HRX_INVALID_ARGUMENT);
    EXPECT_EQ(hrx_queue_wait_idle(nullptr, 0), HRX_INVALID_ARGUMENT);
    EXPECT_NE(std::string(hrx_error_message()).find("queue"), std::string::npos);
}

TEST_F(RuntimeFaultTest, ResultsHaveNames) {
    EXPECT_STREQ(hrx_result_name(HRX_OK), "HRX_OK");
    EXPECT_STREQ(hrx_result_name(HRX_DEVICE_LOST), "HRX_DEVICE_LOST");
    EXPECT_STREQ(hrx_result_name(static_cast<hrx_result>(99)), "unknown");
    EXPECT_EQ(hrx_version(), HRX_VERSION);
}

TEST_F(RuntimeFaultTest, DriversAreListed) {
    EXPECT_STREQ(hrx_driver_name(0), "amdgpu");
    EXPECT_STREQ(hrx_driver_name(1), "cuda");
    EXPECT_EQ(hrx_driver_name(1000), nullptr);
    uint32_t count = 0;
    EXPECT_EQ(hrx_device_count("vulkan", &count), HRX_NOT_FOUND);
    EXPECT_NE(std::string(hrx_error_message()).find("amdgpu, cuda"), std::string::npos);
}

}  // namespace
}  // namespace onebit::hrx
