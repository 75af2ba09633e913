// If this fails, the supervisor and the real engine do not work together: no answers, or crashes that nobody mends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>

#include "server/supervisor/engine_process.h"
#include "tests/engine/real_engine.h"

namespace onebit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class RealEngineTest : public RealEngine {
protected:
    EngineOptions options(std::vector<std::string> arguments) const {
        EngineOptions options;
        options.program = program;
        options.arguments = std::move(arguments);
        options.runtime_folder = folder.path();
        options.label = "builtin";
        return options;
    }
    EngineOptions serving() const {
        return options({"-m", model.string(), "--device", "none", "-t", "1", "-np", "1", "-c", "4096"});
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
    static UniqueFd complete(const EngineProcess& engine, const std::string& prompt, int tokens, bool stream) {
        const std::string json = R"({"prompt":")" + prompt + R"(","n_predict":)" + std::to_string(tokens) +
                                 R"(,"ignore_eos":true,"stream":)" + (stream ? "true" : "false") + "}";
        return send_request(engine.socket(), post_request("/completion", json));
    }
    static bool served_again(const EngineProcess& engine) {
        return eventually([&] { return engine.generation() == 2 && engine.status().state == EngineState::ready; });
    }
    static void expect_answers(const EngineProcess& engine) {
        const UniqueFd fd = complete(engine, "The capital of France", 4, false);
        ASSERT_TRUE(fd);
        const std::string answer = read_all(fd);
        EXPECT_THAT(answer, HasSubstr("200 OK"));
        EXPECT_THAT(answer, HasSubstr("\"tokens_predicted\":4"));
    }
    static std::string long_prompt() {
        std::string text;
        for (int i = 0; i < 600; ++i) text += "word" + std::to_string(i) + " ";
        return text;
    }
};

TEST_F(RealEngineTest, ServesCountsAndStops) {
    auto engine = start_ready(serving());
    const EngineStatus before = engine->status();
    EXPECT_EQ(before.load_progress, 1.0);
    EXPECT_GT(before.load_steps, 1u) << "llama.cpp's loader no longer calls through our function";
    expect_answers(*engine);
    const EngineStatus after = engine->status();
    EXPECT_GE(after.graphs, before.graphs + 4) << "a graph per token";
    EXPECT_EQ(after.hangs, 0u);
    EXPECT_EQ(after.last_failure, "");
    const auto socket = engine->socket();
    EXPECT_EQ(std::filesystem::status(socket).permissions() & std::filesystem::perms::others_all,
              std::filesystem::perms::none);
    engine->stop();
    EXPECT_EQ(engine->status().state, EngineState::stopped);
    EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(RealEngineTest, API38_NoOriginIsLetIn) {
    auto engine = start_ready(serving());
    for (const std::string origin : {"https://evil.example", "http://localhost:3000", "null"}) {
        for (const std::string method : {"GET", "OPTIONS"}) {
            const UniqueFd fd =
                send_request(engine->socket(), method + " /props HTTP/1.1\r\nHost: x\r\nOrigin: " + origin +
                                                   "\r\nConnection: close\r\n\r\n");
            const std::string answer = read_all(fd);
            EXPECT_THAT(answer, HasSubstr("200 OK"));
            EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow-Origin: *")));
            EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow-Origin: " + origin)));
            EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow-Credentials: true")));
        }
    }
}

TEST_F(RealEngineTest, PropsCannotBeChangedByAClient) {
    auto engine = start_ready(serving());
    EXPECT_THAT(read_all(send_request(engine->socket(), post_request("/props", "{}"))), Not(HasSubstr("200 OK")));
    EXPECT_THAT(read_all(send_request(engine->socket(), get_request("/metrics"))), HasSubstr("llamacpp:"));
    EXPECT_THAT(read_all(send_request(engine->socket(), get_request("/slots"))), HasSubstr("n_ctx"));
}

TEST_F(RealEngineTest, UX09_StoppedBySignalIsKilledAndReplaced) {
    auto impatient = serving();
    impatient.hang_timeout = seconds(4);
    auto engine = start_ready(impatient);
    ::kill(static_cast<pid_t>(engine->status().pid), SIGSTOP);
    EXPECT_TRUE(served_again(*engine));
    EXPECT_EQ(engine->status().hangs, 1u);
    EXPECT_THAT(engine->status().last_failure, HasSubstr("hung"));
    expect_answers(*engine);
}

TEST_F(RealEngineTest, UX10_KilledInPrefill) {
    auto engine = start_ready(serving());
    const uint64_t graphs = engine->status().graphs;
    const UniqueFd request = complete(*engine, long_prompt(), 400, true);
    ASSERT_TRUE(request);
    engine->request_begun();
    EXPECT_TRUE(eventually([&] { return engine->status().graphs > graphs; }));
    ::kill(static_cast<pid_t>(engine->status().pid), SIGKILL);
    EXPECT_THAT(read_all(request), Not(HasSubstr("[DONE]")));  // and it ends
    engine->request_ended();
    EXPECT_TRUE(served_again(*engine));
    expect_answers(*engine);
}

TEST_F(RealEngineTest, UX10_KilledInDecode) {
    auto engine = start_ready(serving());
    const UniqueFd request = complete(*engine, "Once", 4000, true);
    ASSERT_TRUE(request);
    engine->request_begun();
    std::string text;
    char byte;
    while (text.find("data: ") == std::string::npos && ::read(request.get(), &byte, 1) == 1) text += byte;
    ASSERT_THAT(text, HasSubstr("data: "));
    ::kill(static_cast<pid_t>(engine->status().pid), SIGKILL);
    EXPECT_THAT(read_all(request), Not(HasSubstr("\"stop\":true")));
    engine->request_ended();
    EXPECT_TRUE(served_again(*engine));
    EXPECT_THAT(engine->status().last_failure, HasSubstr("killed by signal 9 (out of memory?)"));
    expect_answers(*engine);
}

TEST_F(RealEngineTest, BusyEngineIsNotTakenForHung) {
    auto impatient = serving();
    impatient.hang_timeout = seconds(3);
    auto engine = start_ready(impatient);
    engine->request_begun();
    const UniqueFd request = complete(*engine, long_prompt(), 300, true);
    EXPECT_THAT(read_all(request), HasSubstr("\"stop\":true"));
    engine->request_ended();
    EXPECT_EQ(engine->status().hangs, 0u);
    EXPECT_EQ(engine->generation(), 1u);
}

TEST_F(RealEngineTest, IdleEngineIsLeftAlone) {
    auto impatient = serving();
    impatient.hang_timeout = seconds(4);
    auto engine = start_ready(impatient);
    std::this_thread::sleep_for(seconds(9));  // more than two limits; nothing to wait for but time
    EXPECT_EQ(engine->status().hangs, 0u);
    EXPECT_EQ(engine->generation(), 1u);
}

TEST_F(RealEngineTest, TruncatedModelFailsWithTheLoadersWords) {
    const auto cut = folder.path() / "cut.gguf";
    std::filesystem::copy_file(model, cut);
    std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
    auto engine = start(options({"-m", cut.string(), "--device", "none"}));
    auto ready = engine->wait_ready(kGenerous);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(engine->status().state, EngineState::failed);
    EXPECT_THAT(engine->status().last_output, HasSubstr("model is corrupted or incomplete"));
}

TEST_F(RealEngineTest, MissingModelAndWrongArgumentsFailWithTheirReason) {
    auto missing = start(options({"-m", (folder.path() / "none.gguf").string(), "--device", "none"}));
    EXPECT_FALSE(missing->wait_ready(kGenerous).ok());
    EXPECT_THAT(missing->status().last_output, HasSubstr("none.gguf"));
    auto wrong = start(options({"-m", model.string(), "--no-such-flag"}));
    EXPECT_FALSE(wrong->wait_ready(kGenerous).ok());
    EXPECT_THAT(wrong->status().last_output, HasSubstr("--no-such-flag"));
    auto door = start(options({"-m", model.string(), "--port", "1"}));
    EXPECT_FALSE(door->wait_ready(kGenerous).ok());
    EXPECT_THAT(door->status().last_output, HasSubstr("use --port of 1bit serve"));
    auto router = start(options({}));
    EXPECT_FALSE(router->wait_ready(kGenerous).ok());
    EXPECT_THAT(router->status().last_output, HasSubstr("-m FILE"));
    EXPECT_EQ(router->generation(), 1u) << "a wrong argument stays wrong";
}

#ifdef ONEBIT_HAVE_VULKAN
TEST_F(RealEngineTest, VulkanPipelinesAndGraphsAreCounted) {
    ::setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);  // else ggml hides software Vulkan
    auto engine = start_ready(
        options({"-m", model.string(), "--device", "Vulkan0", "-ngl", "99", "-t", "1", "-np", "1", "-c", "512"}));
    expect_answers(*engine);
    const EngineStatus status = engine->status();
    EXPECT_GT(status.pipelines, 0u) << "compiled pipelines are not seen: a first prompt would look like a hang";
    EXPECT_GE(status.graphs, 4u);
    EXPECT_EQ(status.hangs, 0u);
    EXPECT_EQ(engine->generation(), 1u);
}
#endif

}  // namespace
}  // namespace onebit
