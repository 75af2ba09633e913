// If this fails, a driver of libhrx loses bytes between host and device, or maps memory wrongly.
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>
#include <random>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(MemoryTest);

std::vector<uint8_t> noise(size_t size, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
}

TEST_P(MemoryTest, HoldsWhatWasWritten) {
    for (const hrx_memory kind : {HRX_MEMORY_DEVICE, HRX_MEMORY_HOST}) {
        for (const size_t size : {1, 2, 63, 64, 65, 4095, 4096, 4097, 65536, (1 << 20) + 3, (2 << 20) + 5}) {
            const auto bytes = noise(size);
            const Buffer buffer = must(device().allocate(size, kind));
            EXPECT_EQ(buffer.size(), size);
            EXPECT_NE(buffer.address(), 0u);
            must(buffer.write(std::span(bytes)));
            ASSERT_EQ(must(buffer.read<uint8_t>(size)), bytes) << size << " bytes, kind " << kind;
        }
    }
}

TEST_P(MemoryTest, WritesAndReadsParts) {
    constexpr size_t size = 10000;
    const Buffer buffer = must(device().allocate(size));
    std::vector<uint8_t> expected = noise(size);
    must(buffer.write(std::span(expected)));
    const auto part = noise(333, 2);
    for (const size_t offset : {size_t{0}, size_t{1}, size_t{4095}, size - part.size()}) {
        must(buffer.write(std::span(part), offset));
        std::copy(part.begin(), part.end(), expected.begin() + static_cast<long>(offset));
        EXPECT_EQ(must(buffer.read<uint8_t>(part.size(), offset)), part);
    }
    EXPECT_EQ(must(buffer.read<uint8_t>(size)), expected);
}

TEST_P(MemoryTest, RangesBeyondTheEndAreRefused) {
    const Buffer buffer = must(device().allocate(100));
    const std::vector<uint8_t> bytes(101);
    EXPECT_TRUE(buffer.write(std::span(bytes).first(100)).ok());
    EXPECT_TRUE(fails(buffer.write(std::span(bytes)), ErrorCode::usage, "100 bytes"));
    EXPECT_TRUE(fails(buffer.write(std::span(bytes).first(1), 100), ErrorCode::usage));
    EXPECT_TRUE(buffer.write(std::span(bytes).first(0), 100).ok());
    EXPECT_TRUE(fails(buffer.write(std::span(bytes).first(1), UINT64_MAX), ErrorCode::usage));
    EXPECT_TRUE(fails(buffer.read<uint8_t>(1, 100), ErrorCode::usage));
    EXPECT_EQ(hrx_buffer_write(buffer.get(), 0, nullptr, 1), HRX_INVALID_ARGUMENT);
}

TEST_P(MemoryTest, HostMemoryIsMappedForGood) {
    const Buffer buffer = must(device().allocate(5000, HRX_MEMORY_HOST));
    const auto mapped = must(buffer.map());
    EXPECT_EQ(must(buffer.map()).data(), mapped.data());
    ASSERT_EQ(mapped.size(), 5000u);
    for (size_t i = 0; i < mapped.size(); ++i) mapped[i] = static_cast<std::byte>(i * 7);
    const auto seen = must(buffer.read<uint8_t>(5000));
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<uint8_t>(i * 7));
}

TEST_P(MemoryTest, DeviceMemoryIsMappedWhereTheDeviceSaysSo) {
    const Buffer buffer = must(device().allocate(4096));
    const auto mapped = buffer.map();
    EXPECT_EQ(mapped.ok(), has(HRX_FEATURE_DEVICE_MEMORY_MAPPABLE));
    if (!mapped.ok()) {
        EXPECT_TRUE(fails(mapped, ErrorCode::unsupported));
        return;
    }
    (*mapped)[4095] = std::byte{0x5A};
    EXPECT_EQ(must(buffer.read<uint8_t>(1, 4095)).front(), 0x5A);
}

TEST_P(MemoryTest, KernelsReadAndWriteMappedMemory) {
    const Buffer in = zeros(128, HRX_MEMORY_HOST), out = zeros(128, HRX_MEMORY_HOST);
    const auto source = must(in.map());
    auto* numbers = reinterpret_cast<uint32_t*>(source.data());
    std::iota(numbers, numbers + 128, 1000);
    const Program work = program();
    must(dispatch(work, "cts_add", 2, {bind(out), bind(in), bind(in)}, {128}));
    must(work.finish());
    run(work);
    const auto* sums = reinterpret_cast<const uint32_t*>(must(out.map()).data());
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(sums[i], 2 * (1000 + i));
}

TEST_P(MemoryTest, SizesThatCannotBeAreRefused) {
    EXPECT_TRUE(fails(device().allocate(0), ErrorCode::usage, "at least 1"));
    EXPECT_TRUE(fails(device().allocate(UINT64_MAX), ErrorCode::no_space));
    EXPECT_TRUE(fails(device().allocate(info().max_buffer_bytes + 1), ErrorCode::no_space));
    EXPECT_TRUE(fails(device().allocate(64, static_cast<hrx_memory>(7)), ErrorCode::usage, "7"));
    EXPECT_TRUE(fails(device().allocate(64, HRX_MEMORY_DEVICE, 1u << 31), ErrorCode::usage));
    EXPECT_TRUE(fails(device().allocate(64, HRX_MEMORY_HOST, HRX_BUFFER_EXPORTABLE), ErrorCode::unsupported));
}

TEST_P(MemoryTest, ManyBuffersAreApart) {
    std::vector<Buffer> buffers;
    for (uint32_t i = 0; i < 500; ++i) {
        const uint32_t values[] = {i, ~i};
        buffers.push_back(words(values));
    }
    for (uint32_t i = 0; i < buffers.size(); ++i) {
        ASSERT_EQ(read(buffers[i], 2), (std::vector<uint32_t>{i, ~i}));
    }
}

TEST_P(MemoryTest, ImportsPagesOfTheProcess) {
    if (!has(HRX_FEATURE_IMPORT_HOST)) GTEST_SKIP() << "the device imports no host memory";
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* pages = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    auto* numbers = static_cast<uint32_t*>(pages);
    std::iota(numbers, numbers + 256, 5);
    {
        const Buffer buffer = must(device().import_host(pages, 2 * page + 100));
        EXPECT_EQ(must(buffer.map()).data(), pages);
        const Program work = program();
        must(dispatch(work, "cts_step", 4, {bind(buffer)}, {256, 1}));
        must(work.finish());
        run(work);
        for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(numbers[i], 3 * (i + 5) + 1);
    }
    // the pages are the process's own again
    std::fill(numbers, numbers + 256, 0);
    munmap(pages, 3 * page);
}

TEST_P(MemoryTest, HostPointersThatCannotBeAreRefused) {
    alignas(4096) static char pages[8192];
    EXPECT_TRUE(fails(device().import_host(nullptr, 4096), ErrorCode::usage, "4096"));
    EXPECT_TRUE(fails(device().import_host(pages + 1, 4096), ErrorCode::usage, "4096"));
    EXPECT_TRUE(fails(device().import_host(pages, 0), ErrorCode::usage));
    EXPECT_TRUE(fails(device().import_host(pages, UINT64_MAX - 100), ErrorCode::usage));
    // a page that was there
    void* gone = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    ASSERT_EQ(munmap(static_cast<char*>(gone) + 4096, 4096), 0);
    EXPECT_FALSE(device().import_host(gone, 8192).ok());
    EXPECT_TRUE(device().import_host(gone, 4096).ok());
    munmap(gone, 4096);
}

}  // namespace
}  // namespace onebit::hrx::cts
