// If this fails, the driver for AMD devices cannot be tested: the stand-in for libhsa-runtime64 answers wrongly.
#include "tests/hrx/emulator/hsa_fixture.h"

using hsa_testing::Hsa;
using hsa_testing::library;

TEST_F(Hsa, DescribesTheDevice) {
    char name[64];
    ASSERT_EQ(HSA(hsa_agent_get_info)(gpu_, HSA_AGENT_INFO_NAME, name), HSA_STATUS_SUCCESS);
    EXPECT_STREQ(name, "gfx1151");
    std::uint32_t wave = 0;
    HSA(hsa_agent_get_info)(gpu_, HSA_AGENT_INFO_WAVEFRONT_SIZE, &wave);
    EXPECT_EQ(wave, 32u);
    std::string isa;
    HSA(hsa_agent_iterate_isas)
    (
        gpu_,
        [](hsa_isa_t found, void* out) {
            std::uint32_t length = 0;
            HSA(hsa_isa_get_info_alt)(found, HSA_ISA_INFO_NAME_LENGTH, &length);
            std::string text(length, 0);
            HSA(hsa_isa_get_info_alt)(found, HSA_ISA_INFO_NAME, text.data());
            *static_cast<std::string*>(out) = text.c_str();
            return HSA_STATUS_SUCCESS;
        },
        &isa);
    EXPECT_EQ(isa, "amdgcn-amd-amdhsa--gfx1151");
    EXPECT_EQ(HSA(hsa_agent_get_info)({77}, HSA_AGENT_INFO_NAME, name), HSA_STATUS_ERROR_INVALID_AGENT);
    const char* text = nullptr;
    EXPECT_EQ(HSA(hsa_status_string)(HSA_STATUS_ERROR_INVALID_AGENT, &text), HSA_STATUS_SUCCESS);
    EXPECT_NE(std::string(text).find("INVALID_AGENT"), std::string::npos);
}

TEST_F(Hsa, InitialisationIsCounted) {
    EXPECT_EQ(HSA(hsa_init)(), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_shut_down)(), HSA_STATUS_SUCCESS);
    std::uint64_t time = 0;
    EXPECT_EQ(HSA(hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP, &time), HSA_STATUS_SUCCESS);
    EXPECT_GT(time, 0u);
}

// A shut-down that meets a thread on its way to sleep must wake it: the flag and the count are read in this order for
// it.
TEST(HsaWithoutInit, EndsAtAnyMomentAfterItsStart) {
    for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(HSA(hsa_init)(), HSA_STATUS_SUCCESS);
        for (int spin = 0; spin < i * 20; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        ASSERT_EQ(HSA(hsa_shut_down)(), HSA_STATUS_SUCCESS);
    }
}

TEST(HsaWithoutInit, SaysSo) {
    std::uint64_t time = 0;
    EXPECT_EQ(HSA(hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP, &time), HSA_STATUS_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(HSA(hsa_shut_down)(), HSA_STATUS_ERROR_NOT_INITIALIZED);
}

TEST_F(Hsa, RunsACompiledKernel) {
    load();
    create_queue();
    const int n = 1000;
    auto* a = static_cast<float*>(allocate(n * 4));
    auto* b = static_cast<float*>(allocate(n * 4));
    auto* c = static_cast<float*>(allocate(n * 4));
    for (int i = 0; i < n; ++i) {
        a[i] = static_cast<float>(i);
        b[i] = 0.5f;
    }
    HSA(hsa_amd_profiling_set_profiler_enabled)(queue_, 1);
    hsa_signal_t done = signal(1);
    submit(vec_add(c, a, b, n, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    ASSERT_EQ(wait(done), 0);
    for (int i = 0; i < n; ++i) EXPECT_EQ(c[i], static_cast<float>(i) + 0.5f);
    hsa_amd_profiling_dispatch_time_t time{};
    EXPECT_EQ(HSA(hsa_amd_profiling_get_dispatch_time)(gpu_, done, &time), HSA_STATUS_SUCCESS);
    EXPECT_GE(time.end, time.start);
    EXPECT_EQ(HSA(hsa_queue_load_read_index_relaxed)(queue_), 1u);
    HSA(hsa_signal_destroy)(done);
}

TEST_F(Hsa, RingsWrapAndPacketsKeepOrder) {
    load();
    create_queue();
    auto* x = static_cast<float*>(allocate(256 * 4));
    auto* one = static_cast<float*>(allocate(256 * 4));
    for (int i = 0; i < 256; ++i) one[i] = 1;
    const int rounds = 300;  // the ring has 64 slots
    hsa_signal_t done = signal(rounds);
    auto packet = vec_add(x, x, one, 256, done);
    for (int k = 0; k < rounds; ++k) submit(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
    ASSERT_EQ(wait(done), 0);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(x[i], static_cast<float>(rounds));
}

TEST_F(Hsa, ManyThreadsSubmitToOneQueue) {
    load();
    create_queue();
    auto* x = static_cast<float*>(allocate(256 * 4));
    auto* one = static_cast<float*>(allocate(256 * 4));
    for (int i = 0; i < 256; ++i) one[i] = 1;
    hsa_signal_t done = signal(100);
    auto packet = vec_add(x, x, one, 256, done);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int k = 0; k < 25; ++k) submit(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
        });
    for (std::thread& thread : threads) thread.join();
    // a doorbell may have been rung with an older index last
    HSA(hsa_signal_store_screlease)(queue_->doorbell_signal, 99);
    ASSERT_EQ(wait(done), 0);
    EXPECT_EQ(x[17], 100.0f);
}

TEST_F(Hsa, BarriersWaitForSignals) {
    create_queue();
    hsa_signal_t first = signal(1);
    hsa_signal_t second = signal(1);
    hsa_signal_t done = signal(2);
    hsa_barrier_and_packet_t barrier{};
    barrier.dep_signal[0] = first;
    barrier.dep_signal[4] = second;
    barrier.completion_signal = done;
    submit(barrier, HSA_PACKET_TYPE_BARRIER_OR);
    submit(barrier, HSA_PACKET_TYPE_BARRIER_AND);
    EXPECT_EQ(HSA(hsa_signal_load_scacquire)(done), 2);
    HSA(hsa_signal_subtract_screlease)(second, 1);
    EXPECT_EQ(wait(done, 2), 1);
    HSA(hsa_signal_store_relaxed)(first, 0);
    EXPECT_EQ(wait(done), 0);
    // the vendor's packet: a value and a mask
    hsa_amd_barrier_value_packet_t value{};
    value.amd_format = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;
    value.signal = first;
    value.value = 4;
    value.mask = 0xf;
    value.cond = HSA_SIGNAL_CONDITION_EQ;
    hsa_signal_t passed = signal(1);
    value.completion_signal = passed;
    submit(value, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
    HSA(hsa_signal_store_relaxed)(first, 0x15);
    EXPECT_EQ(HSA(hsa_signal_load_scacquire)(passed), 1);
    HSA(hsa_signal_store_relaxed)(first, 0x14);
    EXPECT_EQ(wait(passed), 0);
}

TEST_F(Hsa, ABlockedQueueDoesNotBlockAnother) {
    load();
    create_queue();
    hsa_queue_t* blocked = queue_;
    hsa_barrier_and_packet_t barrier{};
    hsa_signal_t never = signal(1);
    barrier.dep_signal[0] = never;
    submit(barrier, HSA_PACKET_TYPE_BARRIER_AND);
    create_queue();
    hsa_signal_t done = signal(1);
    hsa_barrier_and_packet_t open{};
    open.completion_signal = done;
    submit(open, HSA_PACKET_TYPE_BARRIER_AND);
    EXPECT_EQ(wait(done), 0);
    EXPECT_EQ(HSA(hsa_queue_destroy)(blocked), HSA_STATUS_SUCCESS);
}

TEST_F(Hsa, NothingRunsBeforeTheDoorbell) {
    create_queue();
    hsa_signal_t done = signal(1);
    hsa_barrier_and_packet_t barrier{};
    barrier.completion_signal = done;
    const std::uint64_t index = submit(barrier, HSA_PACKET_TYPE_BARRIER_AND, false);
    EXPECT_EQ(HSA(hsa_signal_wait_relaxed)(done, HSA_SIGNAL_CONDITION_LT, 1, 50'000'000, HSA_WAIT_STATE_BLOCKED), 1);
    HSA(hsa_signal_store_screlease)(queue_->doorbell_signal, static_cast<std::int64_t>(index));
    EXPECT_EQ(wait(done), 0);
}

TEST_F(Hsa, AFaultStopsTheQueueAndNamesTheAddress) {
    load();
    create_queue();
    static std::atomic<std::uint64_t> fault{0};
    fault.store(0);
    HSA(hsa_amd_register_system_event_handler)
    (
        [](const hsa_amd_event_t* event, void*) {
            fault.store(event->memory_fault.virtual_address);
            return HSA_STATUS_SUCCESS;
        },
        nullptr);
    auto* a = static_cast<float*>(allocate(100 * 4));
    hsa_signal_t done = signal(1);
    submit(vec_add(a, a, a, 101, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    EXPECT_EQ(wait_error(), HSA_STATUS_ERROR_MEMORY_FAULT);
    EXPECT_EQ(fault.load(), reinterpret_cast<std::uint64_t>(a + 100));
    EXPECT_EQ(HSA(hsa_signal_load_relaxed)(done), 1);
    auto* last = library().find<const char* (*)()>("onebit_emulator_last_trap");
    EXPECT_NE(std::string(last()).find("vec_add"), std::string::npos);
}

TEST_F(Hsa, WrongPacketsAreRefused) {
    load();
    auto* a = static_cast<float*>(allocate(256 * 4));
    auto good = [&] { return vec_add(a, a, a, 256, {0}); };
    for (int wrong = 0; wrong < 10; ++wrong) {
        error_.store(HSA_STATUS_SUCCESS);
        create_queue();
        auto packet = good();
        if (wrong == 0) packet.kernel_object += 64;
        if (wrong == 1) packet.workgroup_size_x = 0;
        if (wrong == 2) packet.workgroup_size_x = 2048;
        if (wrong == 3) packet.setup = 0;
        if (wrong == 4) packet.kernarg_address = static_cast<std::uint8_t*>(packet.kernarg_address) + 8;
        if (wrong == 5) packet.kernarg_address = nullptr;
        if (wrong == 6) packet.group_segment_size = 65537;
        // scratch of a wave that no GPU has, which would also take the host's memory
        if (wrong == 7) packet.private_segment_size = 0xffffffff;
        if (wrong == 8) packet.private_segment_size = 262137;
        // 2^64 groups, of which a counter of 64 bits keeps none
        if (wrong == 9) {
            packet.setup = 3;
            packet.workgroup_size_x = 1;
            packet.grid_size_x = packet.grid_size_y = 0x80000000;
            packet.grid_size_z = 4;
        }
        submit(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
        EXPECT_EQ(wait_error(), HSA_STATUS_ERROR_INVALID_PACKET_FORMAT) << wrong;
        EXPECT_EQ(HSA(hsa_queue_destroy)(queue_), HSA_STATUS_SUCCESS);
        queue_ = nullptr;
    }
}

TEST_F(Hsa, MemoryIsOnlyWhatWasAllocated) {
    auto* memory = static_cast<std::uint8_t*>(allocate(100));
    hsa_amd_pointer_info_t info{};
    info.size = sizeof(info);
    ASSERT_EQ(HSA(hsa_amd_pointer_info)(memory + 99, &info, nullptr, nullptr, nullptr), HSA_STATUS_SUCCESS);
    EXPECT_EQ(info.type, HSA_EXT_POINTER_TYPE_HSA);
    EXPECT_EQ(info.agentBaseAddress, memory);
    EXPECT_EQ(info.sizeInBytes, 100u);
    HSA(hsa_amd_pointer_info)(memory + 100, &info, nullptr, nullptr, nullptr);
    EXPECT_EQ(info.type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    EXPECT_EQ(HSA(hsa_amd_agents_allow_access)(1, &gpu_, nullptr, memory), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_amd_memory_fill)(memory, 0x01020304, 25), HSA_STATUS_SUCCESS);
    EXPECT_EQ(memory[99], 1);
    EXPECT_EQ(HSA(hsa_amd_memory_pool_free)(memory + 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    EXPECT_EQ(HSA(hsa_amd_memory_pool_free)(memory), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_amd_memory_pool_free)(memory), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    void* none = nullptr;
    EXPECT_NE(HSA(hsa_amd_memory_pool_allocate)(pool_, 0, 0, &none), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_memory_pool_allocate)(pool_, std::size_t{1} << 60, 0, &none), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)({77}, 64, 0, &none), HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
}

TEST_F(Hsa, HostMemoryIsLockedForKernels) {
    load();
    create_queue();
    std::vector<float> host(256, 3.0f);
    void* mapped = nullptr;
    ASSERT_EQ(HSA(hsa_amd_memory_lock)(host.data(), 1024, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    auto* x = static_cast<float*>(mapped);
    hsa_signal_t done = signal(1);
    submit(vec_add(x, x, x, 256, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    ASSERT_EQ(wait(done), 0);
    EXPECT_EQ(host[255], 6.0f);
    ASSERT_EQ(HSA(hsa_amd_memory_unlock)(host.data()), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_memory_unlock)(host.data()), HSA_STATUS_SUCCESS);
    submit(vec_add(x, x, x, 256, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    EXPECT_EQ(wait_error(), HSA_STATUS_ERROR_MEMORY_FAULT);
}

// The process must not end because a kernel runs into pages that the host may not touch itself.
TEST_F(Hsa, LockedPagesMustBeThereAndKeepTheirProtection) {
    load();
    create_queue();
    constexpr std::size_t page = 4096;
    auto* pages =
        static_cast<std::uint8_t*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mprotect(pages + page, page, PROT_READ), 0);
    ASSERT_EQ(mprotect(pages + 2 * page, page, PROT_NONE), 0);
    ASSERT_EQ(munmap(pages + 3 * page, page), 0);
    void* mapped = nullptr;
    EXPECT_NE(HSA(hsa_amd_memory_lock)(pages, 3 * page, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_memory_lock)(pages + 2 * page, page, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_memory_lock)(pages + 3 * page, page, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_memory_lock)(pages, ~std::size_t{0}, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    ASSERT_EQ(HSA(hsa_amd_memory_lock)(pages + page, page, &gpu_, 1, &mapped), HSA_STATUS_SUCCESS);
    auto* x = reinterpret_cast<float*>(mapped);
    auto* out = static_cast<float*>(allocate(page));
    hsa_signal_t done = signal(1);
    submit(vec_add(out, x, x, 1024, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    ASSERT_EQ(wait(done), 0);
    submit(vec_add(x, x, x, 1024, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    EXPECT_EQ(wait_error(), HSA_STATUS_ERROR_MEMORY_FAULT);
    EXPECT_EQ(HSA(hsa_amd_memory_unlock)(mapped), HSA_STATUS_SUCCESS);
    munmap(pages, 3 * page);
}

TEST_F(Hsa, CopiesWaitForSignals) {
    auto* a = static_cast<std::uint32_t*>(allocate(4096));
    auto* b = static_cast<std::uint32_t*>(allocate(4096));
    for (std::uint32_t i = 0; i < 1024; ++i) a[i] = i;
    hsa_signal_t go = signal(1);
    hsa_signal_t done = signal(1);
    ASSERT_EQ(HSA(hsa_amd_memory_async_copy)(b, gpu_, a, cpu_, 4096, 1, &go, done), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_signal_wait_relaxed)(done, HSA_SIGNAL_CONDITION_LT, 1, 20'000'000, HSA_WAIT_STATE_BLOCKED), 1);
    HSA(hsa_signal_store_screlease)(go, 0);
    ASSERT_EQ(wait(done), 0);
    EXPECT_EQ(b[1023], 1023u);
    EXPECT_EQ(HSA(hsa_memory_copy)(b, a + 1, 8), HSA_STATUS_SUCCESS);
    EXPECT_EQ(b[1], 2u);
}

TEST_F(Hsa, MapsAFileThatOthersShare) {
    const int fd = memfd_create("test", MFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, 8192), 0);
    std::size_t size = 0;
    void* mapped = nullptr;
    ASSERT_EQ(HSA(hsa_amd_interop_map_buffer)(1, &gpu_, fd, 0, &size, &mapped, nullptr, nullptr), HSA_STATUS_SUCCESS);
    EXPECT_EQ(size, 8192u);
    auto* ours = static_cast<float*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ASSERT_NE(ours, MAP_FAILED);
    close(fd);
    for (int i = 0; i < 2048; ++i) ours[i] = 1.0f;
    load();
    create_queue();
    auto* x = static_cast<float*>(mapped);
    hsa_signal_t done = signal(1);
    submit(vec_add(x, x, x, 2048, done), HSA_PACKET_TYPE_KERNEL_DISPATCH);
    ASSERT_EQ(wait(done), 0);
    EXPECT_EQ(ours[2047], 2.0f);
    EXPECT_EQ(HSA(hsa_amd_interop_unmap_buffer)(mapped), HSA_STATUS_SUCCESS);
    EXPECT_NE(HSA(hsa_amd_interop_unmap_buffer)(mapped), HSA_STATUS_SUCCESS);
    munmap(ours, 8192);
}

TEST_F(Hsa, ExportsMemoryWithItsContents) {
    auto* memory = static_cast<std::uint32_t*>(allocate(10000));
    for (std::uint32_t i = 0; i < 2500; ++i) memory[i] = i;
    int fd = -1;
    std::uint64_t offset = 0;
    ASSERT_EQ(HSA(hsa_amd_portable_export_dmabuf)(memory + 1024, 4096, &fd, &offset), HSA_STATUS_SUCCESS);
    EXPECT_EQ(offset, 4096u);
    EXPECT_EQ(memory[2499], 2499u);
    auto* view = static_cast<std::uint32_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset)));
    ASSERT_NE(view, MAP_FAILED);
    EXPECT_EQ(view[0], 1024u);
    view[5] = 77;
    EXPECT_EQ(memory[1029], 77u);
    memory[1030] = 88;
    EXPECT_EQ(view[6], 88u);
    EXPECT_EQ(HSA(hsa_amd_portable_close_dmabuf)(fd), HSA_STATUS_SUCCESS);
    munmap(view, 4096);
    EXPECT_NE(HSA(hsa_amd_portable_export_dmabuf)(memory, 10001, &fd, &offset), HSA_STATUS_SUCCESS);
}

TEST_F(Hsa, HandlersRunWhenSignalsChange) {
    hsa_signal_t watched = signal(3);
    static std::atomic<int> calls{0};
    calls.store(0);
    HSA(hsa_amd_signal_async_handler)
    (
        watched, HSA_SIGNAL_CONDITION_EQ, 0,
        [](hsa_signal_value_t value, void* arg) {
            EXPECT_EQ(value, 0);
            calls.fetch_add(1);
            HSA(hsa_signal_store_screlease)(hsa_signal_t{*static_cast<std::uint64_t*>(arg)}, 0);
            return false;
        },
        &watched.handle);
    HSA(hsa_signal_store_screlease)(watched, 0);
    for (int k = 0; k < 6000 && calls.load() == 0; ++k) usleep(10'000);
    EXPECT_EQ(calls.load(), 1);
    hsa_signal_t signals[2] = {signal(1), signal(5)};
    hsa_signal_condition_t conditions[2] = {HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_GTE};
    std::int64_t values[2] = {0, 5};
    std::int64_t found = 0;
    EXPECT_EQ(
        HSA(hsa_amd_signal_wait_any)(2, signals, conditions, values, 1'000'000'000, HSA_WAIT_STATE_BLOCKED, &found),
        1u);
    EXPECT_EQ(found, 5);
    EXPECT_EQ(HSA(hsa_amd_signal_wait_any)(1, signals, conditions, values, 1'000'000, HSA_WAIT_STATE_BLOCKED, &found),
              UINT32_MAX);
    EXPECT_EQ(HSA(hsa_signal_destroy)(queue_ == nullptr ? hsa_signal_t{12345} : hsa_signal_t{0}),
              HSA_STATUS_ERROR_INVALID_SIGNAL);
}

TEST_F(Hsa, SymbolsAndExecutables) {
    load();
    hsa_executable_symbol_t symbol{};
    ASSERT_EQ(HSA(hsa_executable_get_symbol_by_name)(executable_, "rms_norm.kd", &gpu_, &symbol), HSA_STATUS_SUCCESS);
    std::uint32_t size = 0;
    EXPECT_EQ(HSA(hsa_executable_symbol_get_info)(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &size),
              HSA_STATUS_SUCCESS);
    EXPECT_EQ(size, 32u);
    EXPECT_EQ(
        HSA(hsa_executable_symbol_get_info)(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &size),
        HSA_STATUS_SUCCESS);
    EXPECT_EQ(size, 32u);
    EXPECT_EQ(HSA(hsa_executable_get_symbol_by_name)(executable_, "none.kd", &gpu_, &symbol),
              HSA_STATUS_ERROR_INVALID_SYMBOL_NAME);
    EXPECT_EQ(HSA(hsa_executable_freeze)(executable_, nullptr), HSA_STATUS_ERROR_FROZEN_EXECUTABLE);
    EXPECT_EQ(HSA(hsa_executable_destroy)({12345}), HSA_STATUS_ERROR_INVALID_EXECUTABLE);
    const char text[] = "not a code object";
    hsa_code_object_reader_t reader{};
    ASSERT_EQ(HSA(hsa_code_object_reader_create_from_memory)(text, sizeof(text), &reader), HSA_STATUS_SUCCESS);
    hsa_executable_t other{};
    ASSERT_EQ(HSA(hsa_executable_create_alt)(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR, nullptr, &other),
              HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_executable_load_agent_code_object)(other, gpu_, reader, nullptr, nullptr),
              HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    EXPECT_EQ(HSA(hsa_executable_destroy)(other), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_code_object_reader_destroy)(reader), HSA_STATUS_SUCCESS);
    EXPECT_EQ(HSA(hsa_code_object_reader_destroy)(reader), HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
}

TEST_F(Hsa, EveryFunctionOfTheDriverIsThere) {
    for (const char* name :
         {"hsa_amd_signal_create", "hsa_signal_add_relaxed", "hsa_signal_add_scacquire", "hsa_signal_add_screlease",
          "hsa_signal_add_scacq_screl", "hsa_signal_subtract_relaxed", "hsa_signal_subtract_scacquire",
          "hsa_signal_subtract_scacq_screl", "hsa_queue_store_read_index_relaxed",
          "hsa_queue_store_read_index_screlease", "hsa_queue_load_write_index_relaxed",
          "hsa_queue_load_write_index_scacquire", "hsa_queue_store_write_index_relaxed",
          "hsa_queue_store_write_index_screlease", "hsa_queue_add_write_index_scacquire",
          "hsa_queue_add_write_index_screlease", "hsa_queue_add_write_index_scacq_screl",
          "hsa_amd_profiling_convert_tick_to_system_domain"})
        EXPECT_NE(library().find<void (*)()>(name), nullptr) << name;
}
