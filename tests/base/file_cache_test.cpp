// If this fails, a cache grows without bound, loses what it was given, or hands out bytes that nobody put there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "tests/base/scratch.h"

namespace onebit {
namespace {

using test::bytes_of;
using test::names_in;
using test::text_of;

constexpr uint64_t header = 64;

class Cache : public testing::Test {
protected:
    FileCache open(uint64_t max_bytes) { return std::move(FileCache::open(folder, max_bytes)).value(); }
    std::filesystem::path entry(std::string_view key) const { return folder / (to_hex(sha256(key)) + ".entry"); }
    // The entry alone in the folder, so that a test can count what else is left there.
    size_t files() const { return names_in(folder).size() - std::filesystem::exists(folder / ".lock"); }
    test::ScratchFolder scratch;
    const std::filesystem::path folder = scratch / "cache";
};

ErrorCode code_of(const auto& result) { return result.ok() ? ErrorCode::internal : result.error().code; }

TEST_F(Cache, GivesBackWhatWasPut) {
    FileCache cache = open(1 << 20);
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    EXPECT_EQ(text_of(*cache.get("key")), "value");
    ASSERT_TRUE(cache.put("key", bytes_of("another")).ok());
    EXPECT_EQ(text_of(*cache.get("key")), "another");
    EXPECT_EQ(cache.bytes(), 7 + header);
    EXPECT_EQ(text_of(*open(1 << 20).get("key")), "another") << "a second run of the program";
    EXPECT_EQ(files(), 1u);
}

TEST_F(Cache, KeysOfAnyBytesAndSizes) {
    FileCache cache = open(1 << 20);
    const std::vector<std::string> keys = {
        "", std::string(1, '\0'), std::string(2, '\0'), "../../etc/passwd", "/", "\xff\n", std::string(8 << 20, 'k')};
    for (size_t i = 0; i < keys.size(); i++) ASSERT_TRUE(cache.put(keys[i], bytes_of(std::to_string(i))).ok());
    for (size_t i = 0; i < keys.size(); i++) EXPECT_EQ(text_of(*cache.get(keys[i])), std::to_string(i));
    EXPECT_EQ(files(), keys.size());
}

TEST_F(Cache, AnEmptyValueIsAnEntry) {
    FileCache cache = open(header);
    ASSERT_TRUE(cache.put("key", {}).ok());
    ASSERT_TRUE(cache.get("key").ok());
    EXPECT_TRUE(cache.get("key")->empty());
}

TEST_F(Cache, TheLimitItselfFitsAndOneMoreDoesNot) {
    FileCache cache = open(1000);
    ASSERT_TRUE(cache.put("small", bytes_of("x")).ok());
    const auto result = cache.put("large", bytes_of(std::string(1000 - header + 1, 'x')));
    EXPECT_EQ(code_of(result), ErrorCode::no_space);
    EXPECT_TRUE(cache.get("small").ok()) << "nothing was thrown away for an entry that cannot fit";
    EXPECT_TRUE(cache.put("large", bytes_of(std::string(1000 - header, 'x'))).ok());
    EXPECT_EQ(cache.bytes(), 1000u);
    EXPECT_EQ(code_of(open(0).put("key", {})), ErrorCode::no_space);
}

TEST_F(Cache, PF07_TheLeastRecentlyUsedGoesFirst) {
    FileCache cache = open(3 * (100 + header));
    const std::string value(100, 'v');
    for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(cache.put(key, bytes_of(value)).ok());
    ASSERT_TRUE(cache.get("a").ok());
    ASSERT_TRUE(cache.put("d", bytes_of(value)).ok());
    EXPECT_FALSE(cache.get("b").ok());
    for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(cache.get(key).ok()) << key;
}

TEST_F(Cache, PF07_AThousandEntriesKeepToTheLimit) {
    constexpr uint64_t limit = 20'000;
    FileCache cache = open(limit);
    for (int i = 0; i < 1000; i++) {
        ASSERT_TRUE(cache.put(std::to_string(i), bytes_of(std::string(static_cast<size_t>(i), 'v'))).ok());
        if (i % 50 == 49) {
            ASSERT_LE(cache.bytes(), limit);
        }
    }
    EXPECT_LE(cache.bytes(), limit);
    EXPECT_TRUE(cache.get("999").ok());
    EXPECT_FALSE(cache.get("0").ok());
}

TEST_F(Cache, ReplacingAnEntryCountsItOnce) {
    FileCache cache = open(2 * (100 + header));
    const std::string value(100, 'v');
    ASSERT_TRUE(cache.put("other", bytes_of(value)).ok());
    for (int i = 0; i < 5; i++) ASSERT_TRUE(cache.put("same", bytes_of(value)).ok());
    EXPECT_TRUE(cache.get("other").ok());
}

TEST_F(Cache, ClearRemovesEveryEntry) {
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.clear().ok()) << "an empty cache";
    for (const char* key : {"a", "b"}) ASSERT_TRUE(cache.put(key, bytes_of("x")).ok());
    ASSERT_TRUE(cache.clear().ok());
    EXPECT_EQ(cache.bytes(), 0u);
    EXPECT_EQ(files(), 0u);
    EXPECT_FALSE(cache.get("a").ok());
}

TEST_F(Cache, PF05_EveryKindOfDamageIsAMissAndRemoved) {
    FileCache cache = open(1 << 20);
    const std::string value(1000, 'v');
    std::vector<std::string> damaged;
    ASSERT_TRUE(cache.put("key", bytes_of(value)).ok());
    const std::string sound = test::read_file(entry("key"));
    for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, sound.size() - 1})
        damaged.push_back(sound.substr(0, size));
    damaged.push_back(sound + "x");
    for (const size_t at :
         {size_t{0}, size_t{8}, size_t{15}, size_t{16}, size_t{47}, size_t{48}, size_t{64}, sound.size() - 1}) {
        damaged.push_back(sound);
        damaged.back()[at] ^= 1;
    }
    for (const std::string& bytes : damaged) {
        test::write_file(entry("key"), bytes);
        EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
        EXPECT_FALSE(std::filesystem::exists(entry("key")));
    }
    test::write_file(entry("key"), sound);
    ASSERT_EQ(::chmod(entry("key").c_str(), 0600), 0);
    EXPECT_EQ(text_of(*cache.get("key")), value) << "the undamaged bytes are taken";
}

TEST_F(Cache, PF05_AnEntryUnderAnotherKeysNameIsAMiss) {
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    std::filesystem::rename(entry("key"), entry("other"));
    EXPECT_EQ(code_of(cache.get("other")), ErrorCode::not_found);
}

TEST_F(Cache, PF05_AnEntryThatOthersMayWriteToIsAMiss) {
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    ASSERT_EQ(::chmod(entry("key").c_str(), 0666), 0);
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    EXPECT_FALSE(std::filesystem::exists(entry("key")));
}

TEST_F(Cache, PF05_LinksAndOtherKindsOfFilesAreNotFollowed) {
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    std::filesystem::rename(entry("key"), scratch / "elsewhere");
    std::filesystem::create_symlink(scratch / "elsewhere", entry("key"));
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    EXPECT_TRUE(std::filesystem::exists(scratch / "elsewhere"));
    EXPECT_FALSE(std::filesystem::is_symlink(entry("key")));
    ASSERT_EQ(::mkfifo(entry("key").c_str(), 0600), 0);
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    std::filesystem::create_directory(entry("key"));
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    EXPECT_FALSE(cache.put("key", bytes_of("value")).ok()) << "a folder in the way is not removed";
}

// A file that claims a terabyte must not make a get ask for that much memory.
TEST_F(Cache, AHugeFileIsAMiss) {
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    if (::truncate(entry("key").c_str(), off_t{1} << 40) != 0) GTEST_SKIP() << "no such large files here";
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
}

TEST_F(Cache, PF05_AFolderThatOthersMayWriteToIsRefused) {
    std::filesystem::create_directory(folder);
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(code_of(FileCache::open(folder, 1000)), ErrorCode::conflict);
    ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
    FileCache cache = open(1000);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::conflict) << "also when it was opened up later";
    EXPECT_EQ(code_of(cache.put("key", {})), ErrorCode::conflict);
    EXPECT_EQ(code_of(cache.clear()), ErrorCode::conflict);
}

TEST_F(Cache, PF05_AFolderOfAnotherUserIsRefused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
    std::filesystem::create_directory(folder);
    ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
    ASSERT_EQ(::chown(folder.c_str(), 12345, 12345), 0);
    EXPECT_EQ(code_of(FileCache::open(folder, 1000)), ErrorCode::conflict);
}

TEST_F(Cache, ARemovedFolderComesBack) {
    FileCache cache = open(1000);
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    std::filesystem::remove_all(folder);
    EXPECT_EQ(code_of(cache.get("key")), ErrorCode::not_found);
    EXPECT_EQ(cache.bytes(), 0u);
    EXPECT_TRUE(cache.put("key", bytes_of("value")).ok());
}

TEST_F(Cache, WhatADeadWriterLeftIsRemovedButNotWhatOneIsWriting) {
    FileCache cache = open(1000);
    test::write_file(folder / ".1bit-1-old.tmp", "x");
    test::write_file(folder / ".1bit-1-new.tmp", "x");
    test::write_file(folder / "users-own-file", "x");
    const timespec old[2] = {{std::time(nullptr) - 7200, 0}, {std::time(nullptr) - 7200, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder / ".1bit-1-old.tmp").c_str(), old, 0), 0);
    EXPECT_EQ(cache.bytes(), 0u) << "temporary files are no entries";
    ASSERT_TRUE(cache.put("key", bytes_of("value")).ok());
    EXPECT_FALSE(std::filesystem::exists(folder / ".1bit-1-old.tmp"));
    ASSERT_TRUE(cache.clear().ok());
    EXPECT_TRUE(std::filesystem::exists(folder / ".1bit-1-new.tmp"));
    EXPECT_TRUE(std::filesystem::exists(folder / "users-own-file"));
}

TEST_F(Cache, AFullDiskKeepsTheOldEntries) {
    std::filesystem::create_directory(folder);
    if (!test::mount_small_disk(folder, 64)) GTEST_SKIP() << "mounting is not allowed here";
    FileCache cache = open(1 << 20);
    ASSERT_TRUE(cache.put("old", bytes_of("value")).ok());
    EXPECT_EQ(code_of(cache.put("new", bytes_of(std::string(200'000, 'x')))), ErrorCode::no_space);
    EXPECT_EQ(text_of(*cache.get("old")), "value");
    EXPECT_EQ(files(), 1u);
}

// Values say which key they belong to, so that a mixed-up or half entry is seen.
std::string value_of(int key, size_t size) {
    std::string value = std::to_string(key) + ":";
    value.resize(size, static_cast<char>('a' + key % 26));
    return value;
}

// The count of wrong answers of many puts and gets over twenty keys.
int hammer(FileCache cache, unsigned seed) {
    int wrong = 0;
    for (int i = 0; i < 150; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int key = static_cast<int>(seed >> 16) % 20;
        const size_t size = 100 + (seed >> 8) % 900;
        if (seed & 0x80000000u) {
            wrong += cache.put(std::to_string(key), bytes_of(value_of(key, size))).ok() ? 0 : 1;
        } else if (const auto bytes = cache.get(std::to_string(key)); bytes.ok()) {
            wrong += text_of(*bytes) == value_of(key, bytes->size()) ? 0 : 1;
        } else {
            wrong += bytes.error().code == ErrorCode::not_found ? 0 : 1;
        }
    }
    return wrong;
}

TEST_F(Cache, ManyThreadsAndProcesses) {
    constexpr uint64_t limit = 6000;
    FileCache cache = open(limit);
    std::vector<pid_t> children;
    for (unsigned p = 0; p < 3; p++) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) ::_exit(hammer(cache, 100 + p) == 0 ? 0 : 1);
        children.push_back(child);
    }
    std::atomic<int> wrong{0}, running{3};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; t++) {
        threads.emplace_back([&, t] {
            wrong += hammer(cache, t + 1);
            running--;
        });
    }
    // While no put() is replacing entries their sum is within the limit, not only in the end.
    UniqueFd lock(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    do {
        ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
        EXPECT_LE(cache.bytes(), limit);
        ::flock(lock.get(), LOCK_UN);
        std::this_thread::yield();
    } while (running > 0);
    for (auto& thread : threads) thread.join();
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(cache.bytes(), limit);
    EXPECT_GT(cache.bytes(), 0u);
    for (const std::string& name : names_in(folder)) EXPECT_FALSE(name.ends_with(".tmp")) << name;
}

}  // namespace
}  // namespace onebit
