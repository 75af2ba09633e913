// If this fails, a crashed or hung engine is not noticed or not replaced, or a good one is killed.
#include "server/supervisor/engine_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>

#include "server/supervisor/child_process.h"
#include "server/supervisor/http_probe.h"
#include "tests/server/engine_fixture.h"

namespace onebit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class EngineProcessTest : public ::testing::Test {
protected:
    EngineOptions options(std::vector<std::string> arguments = {}) const {
        EngineOptions options;
        options.program = FAKE_ENGINE;
        options.arguments = std::move(arguments);
        options.runtime_folder = folder.path();
        options.label = "fake";
        options.hang_timeout = seconds(3);
        options.stop_timeout = seconds(60);
        return options;
    }
    static std::unique_ptr<EngineProcess> start(EngineOptions options) {
        auto engine = EngineProcess::start(std::move(options));
        if (!engine.ok()) ADD_FAILURE() << engine.error().message();
        return engine.ok() ? std::move(*engine) : nullptr;
    }
    static std::unique_ptr<EngineProcess> start_ready(EngineOptions options) {
        auto engine = start(std::move(options));
        if (auto ready = engine->wait_ready(kGenerous); !ready.ok()) ADD_FAILURE() << ready.error().message();
        return engine;
    }
    static bool is_gone(int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }
    static std::string ask(const EngineProcess& engine, const std::string& path) {
        const UniqueFd fd = send_request(engine.socket(), get_request(path));
        return fd ? read_all(fd) : "";
    }
    // Sends a request that is not answered.
    UniqueFd poke(const EngineProcess& engine, const std::string& path) const {
        UniqueFd fd = send_request(engine.socket(), get_request(path));
        EXPECT_TRUE(fd) << path;
        return fd;
    }
    static bool served_again(const EngineProcess& engine, uint64_t generation) {
        return eventually(
            [&] { return engine.generation() > generation && engine.status().state == EngineState::ready; });
    }

    RuntimeFolder folder;
};

TEST_F(EngineProcessTest, BecomesReadyAnswersAndStops) {
    auto engine = start_ready(options({"--ready-after", "50"}));
    EXPECT_EQ(engine->generation(), 1u);
    const EngineStatus status = engine->status();
    EXPECT_EQ(status.state, EngineState::ready);
    EXPECT_EQ(status.load_progress, 1.0);
    EXPECT_EQ(status.last_failure, "");
    EXPECT_EQ(status.restarts, 0u);
    EXPECT_THAT(ask(*engine, "/anything"), HasSubstr("200"));
    EXPECT_TRUE(eventually([&] { return engine->status().resident_bytes > 0; }));
    const auto socket = engine->socket();
    engine->stop();
    EXPECT_EQ(engine->status().state, EngineState::stopped);
    EXPECT_EQ(engine->status().resident_bytes, 0u);
    EXPECT_TRUE(is_gone(status.pid));
    EXPECT_FALSE(std::filesystem::exists(socket)) << "the socket's file is left behind";
    EXPECT_EQ(engine->wait_ready(milliseconds(0)).error().code, ErrorCode::unavailable);
    engine->stop();  // a second time does nothing
}

TEST_F(EngineProcessTest, ChildStartsInACleanWorld) {
    // an open descriptor and a blocked signal of ours must not reach the engine
    const std::filesystem::path secret = folder.path() / "secret";
    FILE* leaked = std::fopen(secret.c_str(), "w");
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &before);
    auto pipe_before = ::signal(SIGPIPE, SIG_IGN);
    auto engine = start_ready(options());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::signal(SIGPIPE, pipe_before);
    const std::string world = ask(*engine, "/environment");
    std::fclose(leaked);
    EXPECT_THAT(world, HasSubstr("pdeathsig=9 "));
    EXPECT_THAT(world, HasSubstr("group_leader=1 "));
    EXPECT_THAT(world, HasSubstr("null_stdin=1 "));
    EXPECT_THAT(world, HasSubstr("term_blocked=0 "));
    EXPECT_THAT(world, HasSubstr("pipe_default=1 "));
    EXPECT_THAT(world, Not(HasSubstr("secret")));
    // DEV26: the kernel's OOM killer takes the engine, not the supervisor
    std::ifstream file("/proc/self/oom_score_adj");
    int own = 0;
    file >> own;
    EXPECT_THAT(world, HasSubstr("oom=" + std::to_string(child_oom_score_adj(own)) + "\n"));
}

TEST(OomScore, IsAtLeastFiveHundredAndAboveOurs) {
    EXPECT_EQ(child_oom_score_adj(0), 500);
    EXPECT_EQ(child_oom_score_adj(-1000), 500);
    EXPECT_EQ(child_oom_score_adj(200), 700);
    EXPECT_EQ(child_oom_score_adj(1000), 1000);
}

TEST_F(EngineProcessTest, DiesWithTheSupervisor) {
    int channel[2];
    ASSERT_EQ(::pipe(channel), 0);
    const pid_t supervisor = ::fork();
    if (supervisor == 0) {
        auto engine = EngineProcess::start(options());
        if (engine.ok() && (*engine)->wait_ready(kGenerous).ok()) {
            const int64_t pid = (*engine)->status().pid;
            [[maybe_unused]] const ssize_t written = ::write(channel[1], &pid, sizeof pid);
        }
        for (;;) ::pause();
    }
    int64_t engine = 0;
    ASSERT_EQ(::read(channel[0], &engine, sizeof engine), static_cast<ssize_t>(sizeof engine));
    EXPECT_FALSE(is_gone(engine));
    ::kill(supervisor, SIGKILL);
    ::waitpid(supervisor, nullptr, 0);
    EXPECT_TRUE(eventually([&] {  // an orphan in a container without init may stay a zombie
        return is_gone(engine) || !sample_child(static_cast<pid_t>(engine)).valid;
    }));
    ::close(channel[0]);
    ::close(channel[1]);
}

TEST_F(EngineProcessTest, MissingProgramIsAnErrorAtOnce) {
    auto wrong = options();
    wrong.program = folder.path() / "no-such-program";
    auto engine = EngineProcess::start(wrong);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, ErrorCode::not_found);
    EXPECT_THAT(engine.error().message(), HasSubstr("no-such-program"));
}

TEST_F(EngineProcessTest, RuntimeFolderTooLongForASocketIsRefused) {
    auto deep = options();
    deep.runtime_folder = folder.path() / std::string(100, 'x');
    auto engine = EngineProcess::start(deep);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, ErrorCode::usage);
    EXPECT_THAT(engine.error().message(), HasSubstr("XDG_RUNTIME_DIR"));
}

TEST_F(EngineProcessTest, LoadProgressIsSeenAndKeepsItAlive) {
    auto slow = options({"--load-ms", "7000"});
    slow.start_timeout = seconds(5);
    auto engine = start(slow);
    EXPECT_TRUE(eventually([&] {
        const EngineStatus status = engine->status();
        return status.state == EngineState::starting && status.load_progress > 0.2 && status.load_progress < 1;
    }));
    EXPECT_TRUE(engine->wait_ready(kGenerous).ok());
    EXPECT_EQ(engine->status().hangs, 0u);
}

TEST_F(EngineProcessTest, LoadWithoutProgressIsKilled) {
    auto stuck = options({"--never-ready", "1"});
    stuck.start_timeout = seconds(1);
    auto engine = start(stuck);
    auto ready = engine->wait_ready(kGenerous);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error().code, ErrorCode::unavailable);
    EXPECT_THAT(engine->status().last_failure, HasSubstr("while loading"));
    EXPECT_EQ(engine->status().hangs, 3u);
}

TEST_F(EngineProcessTest, WaitReadyTimesOutWhileLoading) {
    auto engine = start(options({"--ready-after", "100000000"}));
    auto ready = engine->wait_ready(milliseconds(20));
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error().code, ErrorCode::timeout);
}

TEST_F(EngineProcessTest, BadModelFailsAfterThreeStartsWithItsOwnWords) {
    auto engine = start(options({"--print", "0.00.001.000 E llama_model_load: model is corrupt", "--exit", "1"}));
    auto ready = engine->wait_ready(kGenerous);
    ASSERT_FALSE(ready.ok());
    const EngineStatus status = engine->status();
    EXPECT_EQ(status.state, EngineState::failed);
    EXPECT_EQ(engine->generation(), 3u);
    EXPECT_EQ(status.restarts, 2u);
    EXPECT_THAT(status.last_failure, HasSubstr("exited with code 1"));
    EXPECT_THAT(status.last_failure, Not(HasSubstr("model is corrupt"))) << "clients are told this";
    EXPECT_THAT(status.last_output, HasSubstr("model is corrupt"));
    EXPECT_THAT(ready.error().message(), HasSubstr("model is corrupt"));
}

TEST_F(EngineProcessTest, WrongArgumentIsNotTriedAgain) {
    auto engine = start(options({"--exit", "2"}));
    const auto ready = engine->wait_ready(kGenerous);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error().code, ErrorCode::usage);
    EXPECT_EQ(engine->generation(), 1u);
}

TEST_F(EngineProcessTest, StartThatFailsTwiceThenWorksIsServed) {
    const auto budget = folder.path() / "budget";
    std::ofstream(budget) << "xx";
    auto engine = start_ready(options({"--fail-while", budget.string()}));
    EXPECT_EQ(engine->generation(), 3u);
    EXPECT_THAT(engine->status().last_output, HasSubstr("cannot start yet"));
}

TEST_F(EngineProcessTest, WithoutRestartOneCrashIsTheEnd) {
    auto once = options();
    once.restart = false;
    auto engine = start_ready(once);
    poke(*engine, "/exit3");
    EXPECT_TRUE(eventually([&] { return engine->status().state == EngineState::failed; }));
    EXPECT_EQ(engine->generation(), 1u);
}

TEST_F(EngineProcessTest, CrashesAreNamedAndReplaced) {
    auto engine = start_ready(options());
    const auto first_socket = engine->socket();
    poke(*engine, "/segfault");
    EXPECT_TRUE(served_again(*engine, 1));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("killed by signal 11 (Segmentation fault)"));
    EXPECT_FALSE(engine->status().ended_by_others);
    EXPECT_NE(engine->socket(), first_socket) << "a client of the dead engine could reach the new one";
    poke(*engine, "/exit3");
    EXPECT_TRUE(served_again(*engine, 2));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("exited with code 3"));
    poke(*engine, "/exit0");
    EXPECT_TRUE(served_again(*engine, 3));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("exited with code 0"));
    EXPECT_EQ(engine->status().restarts, 3u);
    EXPECT_EQ(engine->status().hangs, 0u);
}

TEST_F(EngineProcessTest, UX10_KillNineIsSeenAtOnceAndReplaced) {
    auto lazy = options();
    lazy.hang_timeout = seconds(3600);  // only the kernel's notice can be what tells us
    auto engine = start_ready(lazy);
    ::kill(static_cast<pid_t>(engine->status().pid), SIGKILL);
    EXPECT_TRUE(eventually([&] { return engine->status().state != EngineState::ready; }, seconds(30)));
    EXPECT_TRUE(served_again(*engine, 1));
    EXPECT_TRUE(engine->status().ended_by_others);
}

TEST_F(EngineProcessTest, UX21_KilledForMemoryIsSaidWithItsSize) {
    auto engine = start_ready(options());
    ASSERT_TRUE(eventually([&] { return engine->status().resident_bytes > 0; }));
    ::kill(static_cast<pid_t>(engine->status().pid), SIGKILL);
    EXPECT_TRUE(served_again(*engine, 1));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("killed by signal 9 (out of memory?), "));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("MiB resident"));
}

TEST_F(EngineProcessTest, KilledWhileLoading) {
    auto engine = start(options({"--kill-self", "1"}));
    EXPECT_FALSE(engine->wait_ready(kGenerous).ok());
    EXPECT_THAT(engine->status().last_failure, HasSubstr("killed by signal 9 (out of memory?)"));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("before it was ready"));
}

TEST_F(EngineProcessTest, UX09_StoppedBySignalIsKilledAndReplaced) {
    auto engine = start_ready(options());
    ::kill(static_cast<pid_t>(engine->status().pid), SIGSTOP);
    EXPECT_TRUE(served_again(*engine, 1));
    EXPECT_EQ(engine->status().hangs, 1u);
    EXPECT_TRUE(engine->status().ended_by_others);
    EXPECT_THAT(engine->status().last_failure, HasSubstr("hung"));
    EXPECT_THAT(engine->status().last_failure, Not(HasSubstr("out of memory")));
}

TEST_F(EngineProcessTest, UX11_WedgedLoopIsFoundThoughHealthAnswers) {
    auto engine = start_ready(options());
    engine->request_begun();
    const UniqueFd request = poke(*engine, "/wedge");
    EXPECT_THAT(ask(*engine, "/health"), HasSubstr("200"));
    EXPECT_TRUE(served_again(*engine, 1));
    engine->request_ended();
    EXPECT_EQ(engine->status().hangs, 1u);
    EXPECT_THAT(engine->status().last_failure, HasSubstr("no answer from its request loop, 1 requests in flight"));
}

TEST_F(EngineProcessTest, GraphThatNeverEndsIsFound) {
    auto engine = start_ready(options());
    ask(*engine, "/longest/1000");  // measured: one millisecond
    const UniqueFd request = poke(*engine, "/stuck-graph");
    EXPECT_TRUE(served_again(*engine, 1));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("inside a graph"));
}

TEST_F(EngineProcessTest, SlowIsNotHung) {
    auto engine = start_ready(options());
    ask(*engine, "/longest/1000000");  // a second per graph: the limit is 20 s
    EXPECT_EQ(engine->present_hang_timeout(), seconds(20));
    engine->request_begun();
    EXPECT_THAT(ask(*engine, "/slow-graph/4000"), HasSubstr("200"));  // longer than the least limit
    EXPECT_THAT(ask(*engine, "/compile/4000"), HasSubstr("200"));
    engine->request_ended();
    EXPECT_EQ(engine->status().hangs, 0u);
    EXPECT_EQ(engine->generation(), 1u);
    EXPECT_EQ(engine->status().pipelines, 80u);
    EXPECT_EQ(engine->status().graphs, 2u);
}

TEST_F(EngineProcessTest, RequestWithoutGraphsIsNoHangWhileTheLoopAnswers) {
    auto patient = options();
    patient.hang_timeout = seconds(4);  // a busy machine may answer late
    auto engine = start_ready(patient);
    engine->request_begun();                  // a client that reads slowly, say
    std::this_thread::sleep_for(seconds(9));  // more than twice the limit; nothing to wait for but time
    EXPECT_EQ(engine->status().hangs, 0u);
    EXPECT_EQ(engine->status().state, EngineState::ready);
    engine->request_ended();
}

TEST_F(EngineProcessTest, MegabyteOfOutputNeitherBlocksNorFillsTheReport) {
    auto engine = start(options({"--flood", "16000", "--exit", "1"}));
    EXPECT_FALSE(engine->wait_ready(kGenerous).ok());
    EXPECT_THAT(engine->status().last_output, HasSubstr("flood line 15999"));
    EXPECT_LT(engine->status().whole_failure().size(), 25'000u);
}

TEST_F(EngineProcessTest, ChattyEngineBecomesReady) {
    auto engine = start_ready(options({"--flood", "16000"}));
    EXPECT_EQ(engine->status().state, EngineState::ready);
}

TEST_F(EngineProcessTest, IgnoredSigtermEndsInSigkill) {
    auto stubborn = options({"--ignore-term", "1"});
    stubborn.stop_timeout = seconds(1);
    auto engine = start_ready(stubborn);
    const int64_t pid = engine->status().pid;
    engine->stop();
    EXPECT_TRUE(is_gone(pid));
    EXPECT_EQ(engine->status().state, EngineState::stopped);
}

TEST_F(EngineProcessTest, TheLimitOfAStopCountsWhetherItCameBeforeOrWhileItRuns) {
    auto stubborn = options({"--ignore-term", "1"});
    stubborn.stop_timeout = seconds(3600);
    auto engine = start_ready(stubborn);
    int64_t pid = engine->status().pid;
    engine->limit_stop(std::chrono::steady_clock::now());
    engine->limit_stop(std::chrono::steady_clock::now() + seconds(3600));  // the earliest counts
    EXPECT_FALSE(is_gone(pid)) << "nobody has stopped it";
    engine->stop();
    EXPECT_TRUE(is_gone(pid));

    auto second = start_ready(stubborn);
    pid = second->status().pid;
    std::thread stopper([&] { second->stop(); });
    EXPECT_TRUE(eventually([&] { return second->status().state == EngineState::stopping; }));
    second->limit_stop(std::chrono::steady_clock::now());
    stopper.join();
    EXPECT_TRUE(is_gone(pid));
}

TEST_F(EngineProcessTest, StopsAStoppedChild) {
    auto engine = start_ready(options());
    const int64_t pid = engine->status().pid;
    ::kill(static_cast<pid_t>(pid), SIGSTOP);
    engine->stop();
    EXPECT_TRUE(is_gone(pid));
}

TEST_F(EngineProcessTest, StopWhileLoadingAndWhileWaitingToRestart) {
    {
        auto engine = start(options({"--ready-after", "100000000"}));
        const int64_t pid = engine->status().pid;
        engine->stop();
        EXPECT_TRUE(is_gone(pid));
    }
    auto engine = start(options({"--exit", "1"}));
    EXPECT_TRUE(eventually([&] { return engine->status().retry_after > milliseconds(0); }));
    EXPECT_EQ(engine->status().pid, 0);
    engine->stop();
    EXPECT_EQ(engine->status().state, EngineState::stopped);
    EXPECT_EQ(engine->status().retry_after, milliseconds(0));
}

TEST_F(EngineProcessTest, StopFromManyThreads) {
    auto engine = start_ready(options());
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            engine->stop();
            EXPECT_EQ(engine->status().state, EngineState::stopped);
        });
    for (auto& thread : threads) thread.join();
}

TEST_F(EngineProcessTest, TwoEnginesInOneFolderDoNotShareASocket) {
    auto first = start_ready(options());
    auto second = start_ready(options());
    EXPECT_NE(first->socket(), second->socket());
    first->stop();
    EXPECT_THAT(ask(*second, "/x"), HasSubstr("200"));
}

TEST(HttpProbe, NobodyListening) {
    HttpProbe probe;
    EXPECT_FALSE(probe.start("/nonexistent/engine.sock", "/health"));
    EXPECT_FALSE(probe.start(std::string(longest_socket_path() + 1, 'x'), "/health"));
    EXPECT_FALSE(probe.start("", "/health"));
    EXPECT_FALSE(probe.running());
    EXPECT_EQ(probe.advance(), -1);
}

TEST_F(EngineProcessTest, StartsAgainWithoutTheMemberItEndedIn) {
    auto engine = start_ready(options());
    EXPECT_THAT(ask(*engine, "/arguments"), Not(HasSubstr("--exclude-member")));
    poke(*engine, "/member/2/abort");
    ASSERT_TRUE(served_again(*engine, 1));
    EngineStatus status = engine->status();
    EXPECT_EQ(status.failed_member, "CUDA0");
    EXPECT_THAT(status.last_failure, HasSubstr("member CUDA0 failed: killed by signal 6"));
    EXPECT_THAT(ask(*engine, "/arguments"), HasSubstr("--exclude-member CUDA0 --reason member CUDA0 failed: killed"));
    // and the next one without both; a hang counts as one, and as a graph that was measured before is soon known
    ask(*engine, "/longest/1000");
    poke(*engine, "/member/1/hang");
    ASSERT_TRUE(served_again(*engine, 2));
    status = engine->status();
    EXPECT_EQ(status.hangs, 1u);
    EXPECT_EQ(status.failed_member, "Vulkan0");
    ASSERT_EQ(status.excluded.size(), 2u);
    EXPECT_EQ(status.member_failures.at({"CUDA0", "crash"}), 1u);
    EXPECT_EQ(status.member_failures.at({"Vulkan0", "hang"}), 1u);
    // a crash outside of all members blames none
    poke(*engine, "/segfault");
    ASSERT_TRUE(served_again(*engine, 3));
    EXPECT_EQ(engine->status().failed_member, "");
    EXPECT_EQ(engine->status().excluded.size(), 2u);
}

TEST_F(EngineProcessTest, StrictStartsAgainWithAllMembers) {
    EngineOptions strict = options();
    strict.strict = true;
    strict.excluded = {{"ROCm0", "by hand"}};
    auto engine = start_ready(strict);
    poke(*engine, "/member/2/abort");
    ASSERT_TRUE(served_again(*engine, 1));
    EXPECT_EQ(engine->status().failed_member, "CUDA0");
    EXPECT_THAT(ask(*engine, "/arguments"), HasSubstr("--exclude-member ROCm0 --reason by hand -- "));
}

}  // namespace
}  // namespace onebit
