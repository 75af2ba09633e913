// If this fails, copies or fills of libhrx change bytes outside their range, or miss some inside it.
#include <random>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(TransferTest);

std::vector<uint8_t> noise(size_t size, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
}

struct CopyCase {
    uint64_t to, from, size;
};

TEST_P(TransferTest, CopiesAnyAlignmentAndSize) {
    constexpr size_t size = 9000;
    std::vector<CopyCase> cases;
    for (const uint64_t length : {0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 255, 256, 257, 4095, 4097}) {
        for (const uint64_t to : {0, 1, 3, 4, 15}) {
            for (const uint64_t from : {0, 1, 4, 13}) cases.push_back({to, from, length});
        }
    }
    const auto source_bytes = noise(size, 3);
    const Buffer source = must(device().allocate(size));
    must(source.write(std::span(source_bytes)));
    // one program for all, each into a part of its own
    constexpr uint64_t pitch = 4200;
    const Buffer target = must(device().allocate(pitch * cases.size()));
    std::vector<uint8_t> expected(pitch * cases.size(), 0xEE);
    must(target.write(std::span<const uint8_t>(expected)));
    const Program work = program();
    for (size_t i = 0; i < cases.size(); ++i) {
        const CopyCase& one = cases[i];
        must(work.copy(target, i * pitch + one.to, source, one.from, one.size));
        std::copy_n(source_bytes.begin() + static_cast<long>(one.from), one.size,
                    expected.begin() + static_cast<long>(i * pitch + one.to));
    }
    must(work.finish());
    run(work);
    const auto seen = must(target.read<uint8_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
        const CopyCase& one = cases[i / pitch];
        ASSERT_EQ(seen[i], expected[i]) << "copy of " << one.size << " from " << one.from << " to " << one.to
                                        << ", byte " << i % pitch;
    }
}

TEST_P(TransferTest, FillsAnyAlignmentAndSize) {
    struct Case {
        uint64_t offset, size;
        uint32_t pattern, pattern_size;
    };
    std::vector<Case> cases;
    for (const uint32_t unit : {1, 2, 4}) {
        for (const uint64_t offset : {0, 1, 2, 3, 5, 15, 16}) {
            for (const uint64_t count : {0, 1, 2, 3, 4, 7, 15, 16, 17, 63, 64, 65, 1000}) {
                cases.push_back({offset * unit, count * unit, 0xA1B2C3D4, unit});
            }
        }
    }
    constexpr uint64_t pitch = 4200;
    const Buffer target = must(device().allocate(pitch * cases.size()));
    std::vector<uint8_t> expected(pitch * cases.size(), 0x11);
    must(target.write(std::span<const uint8_t>(expected)));
    const Program work = program();
    for (size_t i = 0; i < cases.size(); ++i) {
        const Case& one = cases[i];
        must(work.fill(target, i * pitch + one.offset, one.size, one.pattern, one.pattern_size));
        for (uint64_t k = 0; k < one.size; ++k) {
            expected[i * pitch + one.offset + k] = static_cast<uint8_t>(one.pattern >> k % one.pattern_size * 8);
        }
    }
    must(work.finish());
    run(work);
    const auto seen = must(target.read<uint8_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
        const Case& one = cases[i / pitch];
        ASSERT_EQ(seen[i], expected[i]) << "fill of " << one.size << " at " << one.offset << " by " << one.pattern_size
                                        << ", byte " << i % pitch;
    }
}

TEST_P(TransferTest, CopiesMuch) {
    constexpr size_t size = (3u << 20) + 7;
    const auto bytes = noise(size, 4);
    const Buffer host = must(device().allocate(size, HRX_MEMORY_HOST)), local = must(device().allocate(size)),
                 back = must(device().allocate(size, HRX_MEMORY_HOST));
    must(host.write(std::span(bytes)));
    const Program work = program();
    must(work.copy(local, 0, host, 0, size));
    must(work.barrier());
    must(work.copy(back, 0, local, 0, size));
    must(work.finish());
    run(work);
    EXPECT_EQ(must(back.read<uint8_t>(size)), bytes);
}

TEST_P(TransferTest, CopiesWithinOneBufferWithoutOverlap) {
    std::vector<uint32_t> values(64);
    for (uint32_t i = 0; i < 32; ++i) values[i] = i + 1;
    const Buffer buffer = words(values);
    const Program work = program();
    must(work.copy(buffer, 128, buffer, 0, 128));
    EXPECT_TRUE(fails(work.copy(buffer, 127, buffer, 0, 128), ErrorCode::usage, "overlap"));
    EXPECT_TRUE(fails(work.copy(buffer, 0, buffer, 0, 1), ErrorCode::usage, "overlap"));
    EXPECT_TRUE(work.copy(buffer, 0, buffer, 0, 0).ok());
    must(work.finish());
    run(work);
    const auto seen = read(buffer, 64);
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(seen[i], i % 32 + 1);
}

TEST_P(TransferTest, RangesAndPatternsThatCannotBeAreRefused) {
    const Buffer small = must(device().allocate(16)), large = must(device().allocate(64));
    const Program work = program();
    EXPECT_TRUE(fails(work.copy(small, 0, large, 0, 17), ErrorCode::usage));
    EXPECT_TRUE(fails(work.copy(large, 0, small, 0, 17), ErrorCode::usage));
    EXPECT_TRUE(fails(work.copy(large, 60, small, 0, 16), ErrorCode::usage));
    EXPECT_TRUE(fails(work.copy(large, UINT64_MAX, small, 0, 1), ErrorCode::usage));
    EXPECT_TRUE(fails(work.fill(small, 0, 17, 0, 1), ErrorCode::usage));
    EXPECT_TRUE(fails(work.fill(small, 1, 4, 0, 4), ErrorCode::usage, "multiples of 4"));
    EXPECT_TRUE(fails(work.fill(small, 0, 3, 0, 2), ErrorCode::usage, "multiples of 2"));
    EXPECT_TRUE(fails(work.fill(small, 0, 3, 0, 3), ErrorCode::usage, "1, 2 or 4"));
    EXPECT_TRUE(fails(work.fill(small, 0, 0, 0, 0), ErrorCode::usage));
    EXPECT_EQ(hrx_program_command_count(work.get()), 0u);
}

}  // namespace
}  // namespace onebit::hrx::cts
