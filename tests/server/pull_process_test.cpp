// If this fails, a pull that was killed blocks or damages the next one, or two pulls at once damage each other's file.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/pull_fixture.h"

namespace onebit::test {
namespace {

class PullProcess : public PullTest {
protected:
    pid_t start() {
        const std::string url = hub.url(), folder = folders.ours.string();
        std::string program = PULL_ONCE, reference = "org/repo:Q4_K_M", hub_url = url, models = folder;
        char* arguments[] = {program.data(), reference.data(), hub_url.data(), models.data(), nullptr};
        pid_t pid = -1;
        return ::posix_spawn(&pid, PULL_ONCE, nullptr, nullptr, arguments, environ) == 0 ? pid : -1;
    }
    static int wait_for(pid_t pid) {
        int status = 0;
        return ::waitpid(pid, &status, 0) == pid ? status : -1;
    }
};

// MF22, UX14
TEST_F(PullProcess, MF22_UX14_KilledInTheMiddleAndResumedByAnother) {
    const std::string model = small_model(100000);
    hub.add(kFile, model);
    std::atomic<bool> half{false};
    hub.fault = [&](const HubCall& call, int before) -> std::optional<HubAnswer> {
        if (!call.is_file() || before > 0) return std::nullopt;
        return HubAnswer{.body = model, .before_piece = [&](size_t sent) {
                             if (sent < model.size() / 2) return;
                             half = true;
                             while (!hub.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                         }};
    };
    const pid_t pid = start();
    ASSERT_GT(pid, 0);
    // until the half that was sent is on disk
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::error_code error;
    while ((!half || fs::file_size(partial(), error) < model.size() / 2 || error) &&
           std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(half);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ASSERT_TRUE(WIFSIGNALED(wait_for(pid)));
    EXPECT_TRUE(fs::exists(target().parent_path() / ".pull.lock"));
    EXPECT_FALSE(fs::exists(target()));

    const pid_t second = start();
    ASSERT_GT(second, 0);
    EXPECT_EQ(wait_for(second), 0);
    EXPECT_EQ(read_file(target()), model);
    EXPECT_EQ(left(), whole());
    EXPECT_NE(hub.file_calls().back().header("range"), "");
}

TEST_F(PullProcess, TwoAtOnceDownloadOnce) {
    const std::string model = small_model(100000);
    hub.add(kFile, model);
    hub.fault = [&](const HubCall& call, int) -> std::optional<HubAnswer> {
        if (!call.is_file()) return std::nullopt;
        // until the other one has read the list too
        return HubAnswer{.body = model, .before_piece = [&](size_t) {
                             const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
                             while (hub.calls().size() < 5 && !hub.stopping() && std::chrono::steady_clock::now() < end)
                                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                         }};
    };
    const pid_t first = start(), second = start();
    ASSERT_GT(first, 0);
    ASSERT_GT(second, 0);
    EXPECT_EQ(wait_for(first), 0);
    EXPECT_EQ(wait_for(second), 0);
    EXPECT_EQ(read_file(target()), model);
    EXPECT_EQ(hub.file_calls().size(), 1u);
    EXPECT_EQ(left(), whole());
}

}  // namespace
}  // namespace onebit::test
