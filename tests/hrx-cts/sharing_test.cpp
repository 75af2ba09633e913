// If this fails, memory that libhrx exports or imports is not the same memory on both sides.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "base/unique_fd.h"
#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(SharingTest);

size_t open_descriptors() {
    size_t count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) != -1;
    return count;
}

std::vector<uint32_t> counted(size_t count, uint32_t first) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
}

TEST_P(SharingTest, ExportAndImportAreOneMemory) {
    int kinds = 0;
    for (const auto& [kind, exports, imports] :
         {std::tuple{HRX_FD_DMA_BUF, HRX_FEATURE_EXPORT_DMA_BUF, HRX_FEATURE_IMPORT_DMA_BUF},
          std::tuple{HRX_FD_OPAQUE, HRX_FEATURE_EXPORT_OPAQUE, HRX_FEATURE_IMPORT_OPAQUE}}) {
        if (!has(exports) || !has(imports)) continue;
        kinds++;
        constexpr size_t count = 100'000;
        const Buffer owner = must(device().allocate(count * 4, HRX_MEMORY_DEVICE, HRX_BUFFER_EXPORTABLE));
        const auto values = counted(count, 1);
        must(owner.write(std::span(values)));
        Buffer guest;
        {
            const Buffer::Exported exported = must(owner.export_fd(kind));
            EXPECT_TRUE(exported.fd);
            EXPECT_GE(exported.allocation_size, exported.offset + count * 4);
            guest =
                must(device().import_fd(kind, exported.fd.get(), exported.allocation_size, exported.offset, count * 4));
            // the descriptor is still ours, and may be closed now
            EXPECT_NE(fcntl(exported.fd.get(), F_GETFD), -1);
        }
        EXPECT_EQ(read(guest, count), values);
        const Program work = program();
        must(dispatch(work, "cts_step", count / 64, {bind(guest)}, {count / 64 * 64, 2}));
        must(work.finish());
        run(work);
        const auto seen = read(owner, count);
        for (uint32_t i = 0; i < count / 64 * 64; ++i) ASSERT_EQ(seen[i], values[i] * 3 + 2);
    }
    if (kinds == 0) GTEST_SKIP() << "no kind of descriptor can be both exported and imported";
}

TEST_P(SharingTest, AGuestOutlivesTheOwner) {
    const bool dma_buf = has(HRX_FEATURE_EXPORT_DMA_BUF) && has(HRX_FEATURE_IMPORT_DMA_BUF);
    if (!dma_buf && !(has(HRX_FEATURE_EXPORT_OPAQUE) && has(HRX_FEATURE_IMPORT_OPAQUE))) {
        GTEST_SKIP() << "no kind of descriptor can be both exported and imported";
    }
    const hrx_fd_kind kind = dma_buf ? HRX_FD_DMA_BUF : HRX_FD_OPAQUE;
    const auto values = counted(5000, 77);
    Buffer guest;
    {
        const Buffer owner = must(device().allocate(20000, HRX_MEMORY_DEVICE, HRX_BUFFER_EXPORTABLE));
        must(owner.write(std::span(values)));
        const Buffer::Exported exported = must(owner.export_fd(kind));
        guest = must(device().import_fd(kind, exported.fd.get(), exported.allocation_size, exported.offset, 20000));
    }
    EXPECT_EQ(read(guest, 5000), values);
}

TEST_P(SharingTest, PartsOfAnImportBeginAtTheirOffset) {
    const bool dma_buf = has(HRX_FEATURE_EXPORT_DMA_BUF) && has(HRX_FEATURE_IMPORT_DMA_BUF);
    if (!dma_buf && !(has(HRX_FEATURE_EXPORT_OPAQUE) && has(HRX_FEATURE_IMPORT_OPAQUE))) {
        GTEST_SKIP() << "no kind of descriptor can be both exported and imported";
    }
    const hrx_fd_kind kind = dma_buf ? HRX_FD_DMA_BUF : HRX_FD_OPAQUE;
    constexpr uint64_t size = 4 << 20, offset = 2 << 20;
    const Buffer owner = must(device().allocate(size, HRX_MEMORY_DEVICE, HRX_BUFFER_EXPORTABLE));
    const uint32_t mark[] = {0xC0FFEE};
    must(owner.write(std::span(mark), offset));
    const Buffer::Exported exported = must(owner.export_fd(kind));
    const Buffer guest = must(
        device().import_fd(kind, exported.fd.get(), exported.allocation_size, exported.offset + offset, size - offset));
    EXPECT_EQ(read(guest, 1).front(), 0xC0FFEEu);
    EXPECT_TRUE(
        fails(device().import_fd(kind, exported.fd.get(), exported.allocation_size, offset, exported.allocation_size),
              ErrorCode::usage, "offset"));
}

TEST_P(SharingTest, ExportsOfWhatCannotBeExportedAreRefused) {
    const Buffer plain = must(device().allocate(4096));
    EXPECT_TRUE(fails(plain.export_fd(HRX_FD_DMA_BUF), ErrorCode::unsupported, "HRX_BUFFER_EXPORTABLE"));
    EXPECT_TRUE(fails(plain.export_fd(static_cast<hrx_fd_kind>(9)), ErrorCode::usage, "9"));
    if (!has(HRX_FEATURE_EXPORT_DMA_BUF) && !has(HRX_FEATURE_EXPORT_OPAQUE)) return;
    const Buffer owner = must(device().allocate(4096, HRX_MEMORY_DEVICE, HRX_BUFFER_EXPORTABLE));
    if (!has(HRX_FEATURE_EXPORT_OPAQUE)) {
        EXPECT_TRUE(fails(owner.export_fd(HRX_FD_OPAQUE), ErrorCode::unsupported));
    }
    const Buffer::Exported one =
        must(owner.export_fd(has(HRX_FEATURE_EXPORT_DMA_BUF) ? HRX_FD_DMA_BUF : HRX_FD_OPAQUE));
    EXPECT_TRUE(one.fd);
}

TEST_P(SharingTest, DescriptorsThatHoldNoMemoryAreRefused) {
    for (const auto& [kind, feature] :
         {std::pair{HRX_FD_DMA_BUF, HRX_FEATURE_IMPORT_DMA_BUF}, std::pair{HRX_FD_OPAQUE, HRX_FEATURE_IMPORT_OPAQUE}}) {
        EXPECT_TRUE(fails(device().import_fd(kind, -1, 4096, 0, 4096), ErrorCode::usage, "-1"));
        const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
        EXPECT_TRUE(fails(device().import_fd(kind, null.get(), 4096, 0, 0), ErrorCode::usage));
        EXPECT_TRUE(fails(device().import_fd(kind, null.get(), 4096, 4097, 1), ErrorCode::usage));
        const auto refused = device().import_fd(kind, null.get(), 4096, 0, 4096);
        ASSERT_FALSE(refused.ok());
        if (!has(feature)) {
            EXPECT_TRUE(fails(refused, ErrorCode::unsupported));
        }
        // the descriptor was not closed
        EXPECT_NE(fcntl(null.get(), F_GETFD), -1);
    }
}

TEST_P(SharingTest, NoDescriptorIsLeftBehind) {
    const bool dma_buf = has(HRX_FEATURE_EXPORT_DMA_BUF) && has(HRX_FEATURE_IMPORT_DMA_BUF);
    if (!dma_buf && !(has(HRX_FEATURE_EXPORT_OPAQUE) && has(HRX_FEATURE_IMPORT_OPAQUE))) {
        GTEST_SKIP() << "no kind of descriptor can be both exported and imported";
    }
    const hrx_fd_kind kind = dma_buf ? HRX_FD_DMA_BUF : HRX_FD_OPAQUE;
    const auto round_trip = [&] {
        const Buffer owner = must(device().allocate(8192, HRX_MEMORY_DEVICE, HRX_BUFFER_EXPORTABLE));
        const Buffer::Exported exported = must(owner.export_fd(kind));
        const Buffer guest =
            must(device().import_fd(kind, exported.fd.get(), exported.allocation_size, exported.offset, 8192));
        const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
        EXPECT_FALSE(device().import_fd(kind, null.get(), 4096, 0, 4096).ok());
    };
    round_trip();
    const size_t before = open_descriptors();
    for (int i = 0; i < 20; ++i) round_trip();
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace onebit::hrx::cts
