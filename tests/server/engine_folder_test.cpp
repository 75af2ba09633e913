// Breaks when killed servers leave their folders behind for ever, or a start removes the folder of one that lives.
#include "server/supervisor/engine_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "tests/server/supervisor_testing.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class EngineFolderTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (const char* value = std::getenv("XDG_RUNTIME_DIR")) before_ = value;
        ::setenv("XDG_RUNTIME_DIR", base().c_str(), 1);
    }
    void TearDown() override {
        if (before_)
            ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
        else
            ::unsetenv("XDG_RUNTIME_DIR");
    }
    const fs::path& base() const { return folder_.path(); }
    size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(base()), {})); }
    static EngineFolder make() {
        Result<EngineFolder> made = EngineFolder::create();
        EXPECT_TRUE(made.ok()) << made.error().message();
        return *std::move(made);
    }
    // What a process leaves that is killed.
    fs::path left_by_killed() {
        int told[2];
        EXPECT_EQ(::pipe(told), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            Result<EngineFolder> made = EngineFolder::create();
            const std::string path = made.ok() ? made->path().string() : "";
            std::ofstream(made->path() / "engine-1-1.sock") << "x";
            if (::write(told[1], path.data(), path.size()) < 0) ::_exit(1);
            for (;;) ::pause();
        }
        char path[256] = {};
        EXPECT_GT(::read(told[0], path, sizeof(path) - 1), 0);
        EXPECT_TRUE(fs::exists(path));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        ::close(told[0]);
        ::close(told[1]);
        return path;
    }

private:
    testing::TempFolder folder_;
    std::optional<std::string> before_;
};

TEST_F(EngineFolderTest, is_private_and_goes_with_its_object) {
    fs::path path;
    {
        EngineFolder folder = make();
        path = folder.path();
        EXPECT_EQ(path.parent_path(), base());
        EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
        std::ofstream(path / "socket") << "x";
        EngineFolder moved = std::move(folder);
        EXPECT_EQ(moved.path(), path);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST_F(EngineFolderTest, what_a_killed_process_left_goes_and_what_a_living_one_has_stays) {
    const EngineFolder alive = make();
    const fs::path dead = left_by_killed();
    EXPECT_TRUE(fs::exists(dead));
    const EngineFolder next = make();
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_TRUE(fs::exists(alive.path() / "lock"));
    EXPECT_EQ(count(), 2u);
}

TEST_F(EngineFolderTest, what_is_not_ours_stays) {
    const fs::path empty = base() / "1bit-abcdef", other = base() / "1bit-run-abcdef", longer = base() / "1bit-abcdefg";
    const fs::path target = base() / "target", link = base() / "1bit-linked", folder = base() / "1bit-folder";
    const fs::path inner = base() / "1bit-inlink";
    for (const fs::path& one : {empty, other, longer, target, folder, inner}) fs::create_directory(one);
    for (const fs::path& one : {other, longer, target}) std::ofstream(one / "lock") << "";
    fs::create_directory(folder / "lock");
    fs::create_symlink(target, link);
    fs::create_symlink(target / "lock", inner / "lock");
    ASSERT_EQ(::mkfifo((empty / "lock").c_str(), 0600), 0);
    std::ofstream(base() / "1bit-a_file") << "";
    const EngineFolder made = make();
    EXPECT_EQ(count(), 9u);
    EXPECT_TRUE(fs::exists(target / "lock"));
}

TEST_F(EngineFolderTest, an_empty_one_goes_once_no_process_can_be_about_to_use_it) {
    const EngineFolder alive = make();
    fs::remove(alive.path() / "lock");
    const fs::path old = base() / "1bit-oldone", young = base() / "1bit-young1", soon = base() / "1bit-nearly";
    const fs::path open = base() / "1bit-public", full = base() / "1bit-filled", held = base() / "1bit-held_1";
    const fs::path file = base() / "1bit-a_file", link = base() / "1bit-linked", later = base() / "1bit-future";
    for (const fs::path& one : {old, young, soon, open, full, held, later}) {
        fs::create_directory(one);
        fs::permissions(one, one == open ? fs::perms(0755) : fs::perms::owner_all);
    }
    std::ofstream(full / "x") << "x";
    std::ofstream(file) << "";
    fs::create_directory_symlink(young, link);
    const auto now = fs::file_time_type::clock::now();
    for (const fs::path& one : {old, open, full, held, file, alive.path()}) fs::last_write_time(one, now - 61s);
    fs::last_write_time(soon, now - 30s);
    fs::last_write_time(later, now + 3600s);
    const UniqueFd holder(::open(held.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(holder.get(), LOCK_EX | LOCK_NB), 0);

    const EngineFolder next = make();
    EXPECT_FALSE(fs::exists(old));
    for (const fs::path& one : {young, soon, open, full, held, file, link, later, alive.path()})
        EXPECT_TRUE(fs::exists(one)) << one;
}

TEST_F(EngineFolderTest, many_at_once_do_not_remove_each_other) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([] {
            for (int j = 0; j < 50; j++) {
                EngineFolder folder = make();
                EXPECT_TRUE(fs::exists(folder.path() / "lock")) << folder.path();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count(), 0u);
}

TEST_F(EngineFolderTest, without_a_usable_place_there_is_the_next) {
    ::setenv("XDG_RUNTIME_DIR", (base() / std::string(100, 'x')).c_str(), 1);
    EXPECT_EQ(make().path().parent_path(), "/tmp");
    ::setenv("XDG_RUNTIME_DIR", (base() / "none").c_str(), 1);
    EXPECT_EQ(make().path().parent_path(), "/tmp");
}

}  // namespace
}  // namespace onebit
