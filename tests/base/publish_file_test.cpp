// If this fails, a crash or a full disk leaves a broken settings or cache file, or a reader sees half of one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "tests/base/scratch.h"

namespace onebit {
namespace {

using test::bytes_of;
using test::names_in;
using test::read_file;

mode_t mode_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST(PublishFile, WritesAnySize) {
    test::ScratchFolder scratch;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{5} << 20}) {
        const std::string text(size, 'x');
        ASSERT_TRUE(publish_file(scratch / "file", bytes_of(text)).ok());
        EXPECT_EQ(read_file(scratch / "file"), text);
    }
    EXPECT_EQ(names_in(scratch.path()).size(), 1u) << "no temporary file is left";
}

TEST(PublishFile, SetsTheModeWhateverTheUmask) {
    test::ScratchFolder scratch;
    const mode_t old = ::umask(0077);
    ASSERT_TRUE(publish_file(scratch / "open", bytes_of("x"), 0644).ok());
    ::umask(0);
    ASSERT_TRUE(publish_file(scratch / "private", bytes_of("x")).ok());
    ::umask(old);
    EXPECT_EQ(mode_of(scratch / "open"), 0644u);
    EXPECT_EQ(mode_of(scratch / "private"), 0600u);
}

TEST(PublishFile, ReplacesAReadOnlyFile) {
    test::ScratchFolder scratch;
    test::write_file(scratch / "file", "old");
    ASSERT_EQ(::chmod((scratch / "file").c_str(), 0400), 0);
    ASSERT_TRUE(publish_file(scratch / "file", bytes_of("new")).ok());
    EXPECT_EQ(read_file(scratch / "file"), "new");
}

TEST(PublishFile, TheLongestNameWorksAndOneMoreDoesNot) {
    test::ScratchFolder scratch;
    EXPECT_TRUE(publish_file(scratch / std::string(255, 'n'), bytes_of("x")).ok());
    const auto result = publish_file(scratch / std::string(256, 'n'), bytes_of("x"));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::io);
    EXPECT_EQ(names_in(scratch.path()).size(), 1u);
}

TEST(PublishFile, RefusesWhatIsNoFileName) {
    test::ScratchFolder scratch;
    const std::filesystem::path zero = (scratch / "a").string() + std::string("\0b", 2);
    for (const auto& path : {std::filesystem::path(), scratch.path() / "", zero}) {
        const auto result = publish_file(path, bytes_of("x"));
        ASSERT_FALSE(result.ok()) << path;
        EXPECT_EQ(result.error().code, ErrorCode::usage);
    }
    EXPECT_TRUE(names_in(scratch.path()).empty());
}

TEST(PublishFile, NamesAMissingFolder) {
    test::ScratchFolder scratch;
    const auto result = publish_file(scratch / "none/file", bytes_of("x"));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::not_found);
    EXPECT_EQ(result.error().subject, (scratch / "none/file").string());
    EXPECT_TRUE(names_in(scratch.path()).empty());
}

TEST(PublishFile, AFolderInThePlaceOfTheFileStays) {
    test::ScratchFolder scratch;
    std::filesystem::create_directory(scratch / "folder");
    EXPECT_FALSE(publish_file(scratch / "folder", bytes_of("x")).ok());
    EXPECT_FALSE(publish_file("/dev/null/file", bytes_of("x")).ok());
    EXPECT_EQ(names_in(scratch.path()), std::vector<std::string>{"folder"});
}

TEST(PublishFile, AFullDiskLeavesTheOldFileAndNothingElse) {
    test::ScratchFolder scratch;
    std::filesystem::create_directory(scratch / "disk");
    if (!test::mount_small_disk(scratch / "disk", 64)) GTEST_SKIP() << "mounting is not allowed here";
    ASSERT_TRUE(publish_file(scratch / "disk/file", bytes_of("old")).ok());
    const auto result = publish_file(scratch / "disk/file", bytes_of(std::string(1 << 20, 'x')));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::no_space);
    EXPECT_EQ(read_file(scratch / "disk/file"), "old");
    EXPECT_EQ(names_in(scratch / "disk").size(), 1u);
    EXPECT_TRUE(publish_file(scratch / "disk/file", bytes_of("new")).ok()) << "a smaller file still fits";
}

TEST(PublishFile, AReadOnlyDiskLeavesTheOldFile) {
    test::ScratchFolder scratch;
    std::filesystem::create_directory(scratch / "disk");
    if (!test::mount_small_disk(scratch / "disk", 64)) GTEST_SKIP() << "mounting is not allowed here";
    ASSERT_TRUE(publish_file(scratch / "disk/file", bytes_of("old")).ok());
    ASSERT_EQ(::mount("none", (scratch / "disk").c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    EXPECT_EQ(publish_file(scratch / "disk/file", bytes_of("new")).error().code, ErrorCode::io);
    EXPECT_EQ(read_file(scratch / "disk/file"), "old");
    EXPECT_EQ(names_in(scratch / "disk").size(), 1u);
}

// A write that the system cuts in the middle, on any machine: the limit on file sizes.
TEST(PublishFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
    test::ScratchFolder scratch;
    ASSERT_TRUE(publish_file(scratch / "file", bytes_of("old")).ok());
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    rlimit small = old;
    small.rlim_cur = 10'000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto fits = publish_file(scratch / "other", bytes_of(std::string(10'000, 'x')));
    const auto result = publish_file(scratch / "file", bytes_of(std::string(10'001, 'x')));
    ::setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_TRUE(fits.ok());
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().subject, (scratch / "file").string());
    EXPECT_EQ(read_file(scratch / "file"), "old");
    EXPECT_EQ(names_in(scratch.path()).size(), 2u);
}

TEST(PublishFile, AReaderNeverSeesHalfAFile) {
    test::ScratchFolder scratch;
    const auto path = scratch / "file";
    constexpr size_t size = 300'000;
    ASSERT_TRUE(publish_file(path, bytes_of(std::string(size, 'a'))).ok());
    std::atomic<int> running{3}, failures{0};
    std::vector<std::thread> writers;
    for (int t = 0; t < 3; t++) {
        writers.emplace_back([&, t] {
            const std::string text(size, static_cast<char>('a' + t));
            for (int i = 0; i < 30; i++) failures += publish_file(path, bytes_of(text)).ok() ? 0 : 1;
            running--;
        });
    }
    size_t reads = 0;
    do {
        const std::string text = read_file(path);
        EXPECT_EQ(text.size(), size);
        EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
        reads++;
    } while (running > 0 && !HasFailure());
    for (auto& thread : writers) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_GT(reads, 0u);
    EXPECT_EQ(names_in(scratch.path()).size(), 1u);
}

}  // namespace
}  // namespace onebit
