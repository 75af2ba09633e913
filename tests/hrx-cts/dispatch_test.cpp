// If this fails, kernels get wrong arguments, run in a wrong grid, or libhrx takes calls that a device must not see.
#include <numeric>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(DispatchTest);

std::vector<uint32_t> counted(size_t count, uint32_t first) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
}

TEST_P(DispatchTest, ConstantsReachTheKernel) {
    for (const uint32_t count : {1u, 63u, 64u, 65u, 1000u}) {
        const Buffer out = zeros(count + 64);
        const Program work = program();
        must(dispatch(work, "cts_index", (count + 63) / 64, {bind(out)}, {count, 5, 100}));
        must(work.finish());
        run(work);
        const auto seen = read(out, count + 64);
        for (uint32_t i = 0; i < count + 64; ++i) ASSERT_EQ(seen[i], i < count ? i * 5 + 100 : 0) << count;
    }
}

TEST_P(DispatchTest, ManyConstantsReachTheKernel) {
    std::vector<uint32_t> constants(61);
    for (uint32_t i = 0; i < 61; ++i) constants[i] = i * 0x01010101u ^ 0x80000000u;
    const Buffer out = zeros(61);
    const Program work = program();
    must(dispatch(work, "cts_constants", 1, {bind(out)}, constants));
    must(work.finish());
    run(work);
    EXPECT_EQ(read(out, 61), constants);
}

TEST_P(DispatchTest, ManyBindingsReachTheKernel) {
    constexpr uint32_t count = 100;
    std::vector<Buffer> in;
    std::vector<hrx_binding> bindings;
    const Buffer out = zeros(count);
    bindings.push_back(bind(out));
    std::vector<uint32_t> expected(count);
    for (uint32_t k = 0; k < 7; ++k) {
        const auto values = counted(count, 1000 * k + 1);
        in.push_back(words(values));
        bindings.push_back(bind(in.back()));
        for (uint32_t i = 0; i < count; ++i) expected[i] += (k + 1) * values[i];
    }
    const Program work = program();
    must(dispatch(work, "cts_gather", 2, bindings, {count}));
    must(work.finish());
    run(work);
    EXPECT_EQ(read(out, count), expected);
}

TEST_P(DispatchTest, BindingsBeginAtTheirOffset) {
    const Buffer data = words(counted(256, 0));
    const Program work = program();
    must(dispatch(work, "cts_step", 1, {bind(data, 64, 128)}, {32, 7}));
    must(work.finish());
    run(work);
    const auto seen = read(data, 256);
    for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(seen[i], i >= 16 && i < 48 ? i * 3 + 7 : i);
}

TEST_P(DispatchTest, WorkgroupsShareLds) {
    const auto values = counted(64 * 5, 9);
    const Buffer in = words(values), out = zeros(64 * 5);
    const Program work = program();
    must(dispatch(work, "cts_reverse", 5, {bind(out), bind(in)}, {}));
    must(work.finish());
    run(work);
    const auto seen = read(out, 64 * 5);
    for (uint32_t i = 0; i < 64 * 5; ++i) ASSERT_EQ(seen[i], values[i / 64 * 64 + 63 - i % 64]);
}

TEST_P(DispatchTest, GridsOfThreeDimensions) {
    struct Shape {
        uint32_t threads[3], groups[3];
    };
    for (const Shape& shape : {Shape{{1, 1, 1}, {1, 1, 1}}, Shape{{8, 4, 2}, {3, 2, 5}}, Shape{{1, 32, 1}, {2, 1, 3}},
                               Shape{{3, 5, 7}, {2, 2, 2}}, Shape{{33, 1, 1}, {1, 7, 1}}}) {
        const uint32_t x = shape.threads[0] * shape.groups[0], y = shape.threads[1] * shape.groups[1],
                       z = shape.threads[2] * shape.groups[2];
        const Buffer out = zeros(x * y * z);
        const std::vector<uint32_t> constants = {shape.threads[0], shape.threads[1], shape.threads[2], shape.groups[0],
                                                 shape.groups[1]};
        const hrx_binding binding = bind(out);
        hrx_dispatch call{};
        call.executable = kernels().get();
        call.kernel = kernel("cts_grid");
        for (int i = 0; i < 3; ++i) {
            call.workgroup_count[i] = shape.groups[i];
            call.workgroup_size[i] = shape.threads[i];
        }
        call.bindings = &binding;
        call.binding_count = 1;
        call.constants = constants.data();
        call.constant_bytes = 20;
        const Program work = program();
        must(work.dispatch(call));
        must(work.finish());
        run(work);
        const auto seen = read(out, x * y * z);
        for (uint32_t i = 0; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i], i % x + i / x % y * 1000 + i / x / y * 1000000);
        }
    }
}

TEST_P(DispatchTest, EmptyProgramsAndGridsDoNothing) {
    const Program none = program();
    must(none.finish());
    run(none);
    const Buffer out = zeros(64);
    const Program empty = program();
    EXPECT_EQ(must(dispatch(empty, "cts_index", 0, {bind(out)}, {64, 1, 1})), 0u);
    EXPECT_EQ(must(dispatch(empty, "cts_index", 0, {bind(out)}, {64, 1, 1})), 1u);
    must(empty.barrier());
    must(empty.finish());
    EXPECT_EQ(hrx_program_command_count(empty.get()), 2u);
    run(empty);
    EXPECT_EQ(read(out, 64), std::vector<uint32_t>(64));
}

TEST_P(DispatchTest, KernelsAreFoundByName) {
    const Executable loaded = must(load_kernels());
    const uint32_t first = must(loaded.find("cts_index"));
    EXPECT_EQ(must(loaded.find("cts_index")), first);
    EXPECT_NE(must(loaded.find("cts_add")), first);
    EXPECT_TRUE(fails(loaded.find("cts_nothing"), ErrorCode::not_found, "cts_nothing"));
    EXPECT_TRUE(fails(loaded.find(""), ErrorCode::not_found));
    EXPECT_TRUE(fails(loaded.kernel_info(1000), ErrorCode::usage));
    const auto facts = must(loaded.kernel_info(must(loaded.find("cts_reverse"))));
    EXPECT_GE(facts.static_lds_bytes, 256u);
}

TEST_P(DispatchTest, DispatchesThatCannotBeAreRefused) {
    const Buffer out = zeros(64);
    const Program work = program();
    const hrx_binding binding = bind(out);
    const uint32_t constants[] = {64, 1, 1};
    hrx_dispatch right{};
    right.executable = kernels().get();
    right.kernel = kernel("cts_index");
    for (int i = 0; i < 3; ++i) right.workgroup_count[i] = right.workgroup_size[i] = 1;
    right.workgroup_size[0] = 64;
    right.bindings = &binding;
    right.binding_count = 1;
    right.constants = constants;
    right.constant_bytes = sizeof constants;
    const auto refused = [&](auto change, const std::string& text) {
        hrx_dispatch wrong = right;
        change(wrong);
        return fails(work.dispatch(wrong), ErrorCode::usage, text);
    };
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.executable = nullptr; }, "NULL"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.kernel = 100000; }, "100000"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.workgroup_size[0] = 0; }, "at least 1"));
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.workgroup_size[1] = info().max_workgroup_size; }, "work-items"));
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.workgroup_size[2] = 1u << 30; }, "workgroup"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.workgroup_count[0] = UINT32_MAX; }, ""));
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.dynamic_lds_bytes = info().lds_bytes + 1; }, "LDS"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.dynamic_lds_bytes = UINT32_MAX; }, "LDS"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.bindings = nullptr; }, "NULL"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.constants = nullptr; }, "NULL"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.binding_count = UINT32_MAX; }, "bindings"));
    EXPECT_TRUE(refused([](hrx_dispatch& d) { d.constant_bytes = UINT32_MAX; }, "constants"));
    hrx_binding beyond = bind(out, 257);
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.bindings = &beyond; }, "256 bytes"));
    beyond = bind(out, 0, 257);
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.bindings = &beyond; }, "256 bytes"));
    beyond.buffer = nullptr;
    EXPECT_TRUE(refused([&](hrx_dispatch& d) { d.bindings = &beyond; }, "NULL"));
    // none of them is in the program
    EXPECT_EQ(hrx_program_command_count(work.get()), 0u);
    EXPECT_TRUE(work.dispatch(right).ok());
}

TEST_P(DispatchTest, AKernelWithMissingArgumentsIsRefusedWhereTheDriverKnows) {
    const auto facts = must(kernels().kernel_info(kernel("cts_add")));
    if (facts.argument_bytes == 0) GTEST_SKIP() << "the driver does not tell how many bytes a kernel reads";
    const Buffer out = zeros(64);
    EXPECT_TRUE(fails(dispatch(program(), "cts_add", 1, {bind(out), bind(out)}, {64}), ErrorCode::usage, "arguments"));
}

TEST_P(DispatchTest, DynamicLdsUpToTheLimit) {
    const Buffer out = zeros(64);
    const Program work = program();
    const hrx_binding binding = bind(out);
    const uint32_t constants[] = {64, 2, 3};
    hrx_dispatch call{};
    call.executable = kernels().get();
    call.kernel = kernel("cts_index");
    for (int i = 0; i < 3; ++i) call.workgroup_count[i] = call.workgroup_size[i] = 1;
    call.workgroup_size[0] = 64;
    call.dynamic_lds_bytes = info().lds_bytes;
    call.bindings = &binding;
    call.binding_count = 1;
    call.constants = constants;
    call.constant_bytes = sizeof constants;
    must(work.dispatch(call));
    must(work.finish());
    run(work);
    EXPECT_EQ(must_at(read(out, 64), 63), 63u * 2 + 3);
}

TEST_P(DispatchTest, ImagesThatAreNoneAreRefused) {
    const auto image = kernel_image(info().architecture);
    const auto load = [&](std::span<const std::byte> bytes) { return device().load(bytes); };
    EXPECT_TRUE(fails(load({}), ErrorCode::usage));
    const std::vector<std::byte> zeros(4096), few(3);
    EXPECT_TRUE(fails(load(zeros), ErrorCode::invalid));
    EXPECT_TRUE(fails(load(few), ErrorCode::invalid));
    if (image[0] == std::byte{0x7F}) {
        for (const size_t size : {size_t{4}, size_t{63}, size_t{64}, image.size() / 2, image.size() - 1}) {
            EXPECT_TRUE(fails(load(std::span(image).first(size)), ErrorCode::invalid)) << size;
        }
        auto wrong_chip = image;
        wrong_chip[48] = std::byte{0x2C};  // the machine in e_flags: gfx900
        EXPECT_TRUE(fails(load(wrong_chip), ErrorCode::invalid, "HSACO"));
    } else {
        EXPECT_TRUE(fails(load(std::span(image).first(image.size() / 2)), ErrorCode::invalid));
        const std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }\n";
        const auto refused = load(std::as_bytes(std::span(text)));
        EXPECT_TRUE(fails(refused, ErrorCode::invalid, "nonsense")) << "the compiler's log belongs in the message";
    }
}

// Damage that passes for a file must be refused or give kernels that can be asked about, never end the process.
TEST_P(DispatchTest, DamagedImagesDoNoHarm) {
    const auto good = kernel_image(info().architecture);
    if (good[0] != std::byte{0x7F}) GTEST_SKIP() << "the driver compiles text";
    uint32_t state = 7;
    const auto random = [&state](size_t below) {
        state = state * 1664525 + 1013904223;
        return (uint64_t{state} >> 8) % below;
    };
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
        auto image = good;
        // headers, notes and tables come first; one round in three damages the code and the sections
        const size_t reach = round % 3 == 2 ? image.size() : std::min<size_t>(image.size(), 0x1000);
        for (int k = 0; k < 1 + round % 4; ++k) image[random(reach)] = static_cast<std::byte>(random(256));
        const auto loaded = device().load(image);
        if (!loaded.ok()) {
            refused++;
            EXPECT_FALSE(loaded.error().message().empty());
            continue;
        }
        const auto index = loaded->find("cts_add");
        if (index.ok()) {
            EXPECT_TRUE(loaded->kernel_info(*index).ok());
        }
    }
    EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace onebit::hrx::cts
