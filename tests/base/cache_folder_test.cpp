// If this fails, 1bit writes to the wrong folder, or trusts one that others may write to.
#include "base/cache_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "tests/base/scratch.h"

namespace onebit {
namespace {

mode_t mode_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

class Folders : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"ONEBIT_CACHE", "ONEBIT_MODELS", "XDG_CACHE_HOME", "XDG_DATA_HOME"}) ::unsetenv(name);
        ::setenv("HOME", scratch.path().c_str(), 1);
    }
    void set(const char* name, const std::filesystem::path& value) { ::setenv(name, value.c_str(), 1); }
    test::ScratchFolder scratch;
};

TEST_F(Folders, OwnVariableThenXdgThenHome) {
    EXPECT_EQ(*cache_folder(), scratch / ".cache/1bit");
    EXPECT_EQ(*models_folder(), scratch / ".local/share/1bit/models");
    set("XDG_CACHE_HOME", scratch / "xdg");
    set("XDG_DATA_HOME", scratch / "data");
    EXPECT_EQ(*cache_folder(), scratch / "xdg/1bit");
    EXPECT_EQ(*models_folder(), scratch / "data/1bit/models");
    set("ONEBIT_CACHE", scratch / "own");
    set("ONEBIT_MODELS", scratch / "models");
    EXPECT_EQ(*cache_folder(), scratch / "own");
    EXPECT_EQ(*models_folder(), scratch / "models");
}

TEST_F(Folders, EmptyAndRelativeVariables) {
    set("ONEBIT_CACHE", "");
    set("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(*cache_folder(), scratch / ".cache/1bit") << "the XDG specification ignores relative folders";
    std::filesystem::current_path(scratch.path());
    set("ONEBIT_CACHE", "relative");
    EXPECT_EQ(*cache_folder(), std::filesystem::current_path() / "relative") << "absolute, whatever the folder later";
}

TEST_F(Folders, WithoutHomeTheUserDatabaseHelps) {
    ::unsetenv("HOME");
    const auto folder = models_folder();
    if (folder.ok()) {
        EXPECT_TRUE(folder->is_absolute());
    } else {
        EXPECT_EQ(folder.error().code, ErrorCode::io);
        EXPECT_THAT(folder.error().message(), testing::HasSubstr("ONEBIT_MODELS"));
    }
}

TEST_F(Folders, CacheIsMadeForTheUserAloneAndModelsIsNotMade) {
    const mode_t old = ::umask(0);
    set("ONEBIT_CACHE", scratch / "a/b/c");
    EXPECT_TRUE(cache_folder().ok());
    ::umask(old);
    for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(mode_of(scratch / name), 0700u) << name;
    EXPECT_TRUE(cache_folder().ok()) << "a second time";
    EXPECT_TRUE(models_folder().ok());
    EXPECT_FALSE(std::filesystem::exists(scratch / ".local"));
}

TEST_F(Folders, ASlashAtTheEndIsTheSameFolder) {
    set("ONEBIT_CACHE", (scratch / "x/y").string() + "/");
    EXPECT_TRUE(cache_folder().ok());
    EXPECT_TRUE(std::filesystem::is_directory(scratch / "x/y"));
}

TEST_F(Folders, PF05_RefusesAFolderThatOthersMayWriteTo) {
    set("ONEBIT_CACHE", scratch / "shared");
    for (const mode_t mode : {0777, 0770, 0702, 01777}) {
        std::filesystem::create_directory(scratch / "shared");
        ASSERT_EQ(::chmod((scratch / "shared").c_str(), mode), 0);
        const auto folder = cache_folder();
        ASSERT_FALSE(folder.ok()) << std::oct << mode;
        EXPECT_EQ(folder.error().code, ErrorCode::conflict);
        EXPECT_EQ(folder.error().subject, (scratch / "shared").string());
        EXPECT_THAT(folder.error().message(), testing::HasSubstr("chmod 700"));
    }
    ASSERT_EQ(::chmod((scratch / "shared").c_str(), 0755), 0);
    EXPECT_TRUE(cache_folder().ok()) << "others may read";
}

TEST_F(Folders, PF05_RefusesAFolderOfAnotherUser) {
    if (::geteuid() == 0) {
        std::filesystem::create_directory(scratch / "foreign");
        ASSERT_EQ(::chown((scratch / "foreign").c_str(), 12345, 12345), 0);
        set("ONEBIT_CACHE", scratch / "foreign");
    } else {
        set("ONEBIT_CACHE", "/usr");
    }
    const auto folder = cache_folder();
    ASSERT_FALSE(folder.ok());
    EXPECT_EQ(folder.error().code, ErrorCode::conflict);
}

TEST_F(Folders, ALinkToAnOwnFolderIsFine) {
    std::filesystem::create_directory(scratch / "real");
    ASSERT_EQ(::chmod((scratch / "real").c_str(), 0700), 0);
    std::filesystem::create_symlink(scratch / "real", scratch / "link");
    set("ONEBIT_CACHE", scratch / "link");
    EXPECT_TRUE(cache_folder().ok());
}

TEST_F(Folders, WhatCannotBeMadeIsAnIoError) {
    test::write_file(scratch / "file", "x");
    std::filesystem::create_symlink(scratch / "nowhere/at/all", scratch / "dangling");
    for (const auto& path : {scratch / "file", scratch / "file/below", scratch / "dangling",
                             std::filesystem::path("/proc/none"), scratch / std::string(5000, 'n')}) {
        set("ONEBIT_CACHE", path);
        const auto folder = cache_folder();
        ASSERT_FALSE(folder.ok()) << path;
        EXPECT_EQ(folder.error().code, ErrorCode::io) << path;
    }
}

}  // namespace
}  // namespace onebit
