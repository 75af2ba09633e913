// If this fails, a member of a tandem that aborts, hangs or is lost takes the engine down for good, the counters of
// requests and process do not agree, or --strict lets another member in. Real engine processes, with a tandem of CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "server/supervisor/engine_process.h"
#include "tests/engine/real_engine.h"

namespace onebit {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

class TandemEngineTest : public RealEngine {
protected:
    // Prompts from 16 tokens on are read by the guest.
    EngineOptions options(const std::string& more = "", std::vector<std::string> arguments = {}) const {
        EngineOptions options;
        options.program = program;
        options.arguments = {"--onebit-tandem=owner=CPU,prefill=guest:CPU,min=16" + (more.empty() ? "" : "," + more),
                             "-m",
                             model.string(),
                             "-t",
                             "1",
                             "-np",
                             "2",
                             "-c",
                             "4096",
                             "-ub",
                             "64"};
        options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
        options.runtime_folder = folder.path();
        options.label = "builtin";
        return options;
    }
    static std::unique_ptr<EngineProcess> start_ready(EngineOptions options) {
        auto engine = EngineProcess::start(std::move(options));
        if (!engine.ok()) {
            ADD_FAILURE() << engine.error().message();
            return nullptr;
        }
        if (auto ready = (*engine)->wait_ready(kGenerous); !ready.ok()) ADD_FAILURE() << ready.error().message();
        return std::move(*engine);
    }
    static std::string long_prompt() {
        std::string text = "Once upon a time";
        for (int i = 0; i < 60; ++i) text += ", and then there came a bear";
        return text;
    }
    static std::string ask(EngineProcess& engine, const std::string& prompt, int tokens) {
        const json body = {{"prompt", prompt}, {"n_predict", tokens}, {"temperature", 0}, {"ignore_eos", true}};
        engine.request_begun();
        const UniqueFd fd = send_request(engine.socket(), post_request("/completion", body.dump()));
        const std::string answer = fd ? read_all(fd) : "";
        engine.request_ended();
        return answer;
    }
    static json answer_of(EngineProcess& engine, const std::string& prompt, int tokens) {
        const std::string text = ask(engine, prompt, tokens);
        EXPECT_THAT(text, HasSubstr("200 OK"));
        const size_t body = text.find("\r\n\r\n");
        const json answer = body == std::string::npos ? json() : json::parse(text.substr(body + 4), nullptr, false);
        EXPECT_TRUE(answer.is_object()) << text;
        return answer;
    }
    // The engine ends in the guest, and serves again on what is left.
    void expect_goes_on_without(EngineProcess& engine, const std::string& member, const std::string& kind) {
        const std::string cut = ask(engine, long_prompt(), 80);
        EXPECT_EQ(cut.find("\"content\""), std::string::npos) << cut;
        ASSERT_TRUE(
            eventually([&] { return engine.generation() == 2 && engine.status().state == EngineState::ready; }));
        const EngineStatus status = engine.status();
        EXPECT_EQ(status.failed_member, member);
        EXPECT_THAT(status.last_failure, HasSubstr("member " + member + " failed"));
        EXPECT_EQ(status.member_failures.at({member, kind}), 1u);
        ASSERT_EQ(status.excluded.size(), 1u);
        EXPECT_EQ(status.excluded[0].member, member);
        EXPECT_EQ(engine.tandem().name, "") << "one device is no tandem";
        const json answer = answer_of(engine, long_prompt(), 8);
        EXPECT_EQ(answer["content"], content_alone());
        EXPECT_THAT(answer["timings"]["onebit"]["excluded"][member].get<std::string>(), HasSubstr(member));
        EXPECT_EQ(engine.generation(), 2u);
    }
    // What the CPU alone answers.
    std::string content_alone() const {
        EngineOptions plain = options();
        plain.arguments.erase(plain.arguments.begin());
        plain.arguments.insert(plain.arguments.end(), {"--device", "none"});
        auto engine = start_ready(std::move(plain));
        const json answer = answer_of(*engine, long_prompt(), 8);
        EXPECT_FALSE(answer["timings"].contains("onebit"));
        return answer["content"];
    }
};

TEST_F(TandemEngineTest, AnAnswerSaysWhichMembersComputedItAndTheSumsAreTheProcess) {
    auto engine = start_ready(options());
    const TandemReport before = engine->tandem();
    EXPECT_EQ(before.name, "Tandem0");
    ASSERT_EQ(before.members.size(), 2u);
    EXPECT_EQ(before.members[before.prefill].name, "guest:CPU");
    EXPECT_EQ(before.members[before.decode].name, "CPU");
    EXPECT_EQ(before.min_tokens, 16u);

    const json split = answer_of(*engine, long_prompt(), 8);
    EXPECT_EQ(split["content"], content_alone());
    const json& ours = split["timings"]["onebit"];
    EXPECT_GT(ours["members"]["guest:CPU"]["prefill_tokens"].get<int>(), 64);
    EXPECT_GE(ours["members"]["CPU"]["decode_tokens"].get<int>(), 7);
    EXPECT_FALSE(ours.contains("unsplit"));
    EXPECT_EQ(ours["mixed"], false);
    EXPECT_TRUE(ours["fallbacks"].empty());

    const json short_one = answer_of(*engine, "Hello", 4);
    EXPECT_THAT(short_one["timings"]["onebit"]["unsplit"].get<std::string>(), HasSubstr("16 tokens"));
    EXPECT_FALSE(short_one["timings"]["onebit"]["members"].contains("guest:CPU"));

    const TandemReport after = engine->tandem();
    uint64_t requests = 0, process = 0;
    for (const json& answer : {split, short_one})
        for (const auto& [name, tokens] : answer["timings"]["onebit"]["members"].items())
            requests += tokens["prefill_tokens"].get<uint64_t>() + tokens["decode_tokens"].get<uint64_t>();
    for (size_t i = 0; i < after.members.size(); ++i)
        process += after.members[i].prefill_tokens - before.members[i].prefill_tokens + after.members[i].decode_tokens -
                   before.members[i].decode_tokens;
    EXPECT_EQ(requests, process);
    EXPECT_GE(after.handoffs, 1u);
    EXPECT_GT(after.shared_bytes, 0u);
}

TEST_F(TandemEngineTest, AnAbandonedRequestIsNotChargedToTheNext) {
    auto engine = start_ready(options("", {"-np", "1"}));
    {
        const json body = {{"prompt", long_prompt()}, {"n_predict", 2000}, {"ignore_eos", true}, {"stream", true}};
        const UniqueFd fd = send_request(engine->socket(), post_request("/completion", body.dump()));
        char byte;
        std::string text;
        while (text.find("data: ") == std::string::npos && ::read(fd.get(), &byte, 1) == 1) text += byte;
        ASSERT_THAT(text, HasSubstr("data: "));
    }
    const json answer = answer_of(*engine, "Hello", 4);
    const json& members = answer["timings"]["onebit"]["members"];
    EXPECT_FALSE(members.contains("guest:CPU")) << members;
    EXPECT_LE(members["CPU"]["decode_tokens"].get<int>(), 15);
}

TEST_F(TandemEngineTest, AFallbackStandsInTheAnswer) {
    auto engine = start_ready(options("deny=guest:CPU/SWIGLU"));
    const json answer = answer_of(*engine, long_prompt(), 4);
    EXPECT_EQ(answer["content"].get<std::string>().empty(), false);
    const json& ours = answer["timings"]["onebit"];
    EXPECT_THAT(ours["unsplit"].get<std::string>(), HasSubstr("SWIGLU"));
    EXPECT_FALSE(ours["fallbacks"].empty());
    ASSERT_FALSE(engine->tandem().fallbacks.empty());
    EXPECT_THAT(engine->tandem().fallbacks[0].first, HasSubstr("SWIGLU"));
}

TEST_F(TandemEngineTest, StrictMakesAnErrorOfIt) {
    auto engine = start_ready(options("strict=1,deny=guest:CPU/SWIGLU"));
    const std::string refused = ask(*engine, long_prompt(), 4);
    EXPECT_THAT(refused, HasSubstr(" 500 "));
    EXPECT_THAT(refused, HasSubstr("SWIGLU"));
    EXPECT_THAT(refused, HasSubstr("guest:CPU"));
    EXPECT_GT(engine->tandem().refused, 0u);
    EXPECT_THAT(ask(*engine, "Hello", 4), HasSubstr("200 OK"));
    EXPECT_EQ(engine->generation(), 1u);
}

TEST_F(TandemEngineTest, AMemberThatAbortsIsLeftOut) {
    auto engine = start_ready(options("fault=abort/guest:CPU/1"));
    expect_goes_on_without(*engine, "guest:CPU", "crash");
}

TEST_F(TandemEngineTest, ADeviceThatIsLostIsLeftOut) {
    auto engine = start_ready(options("fault=lost/guest:CPU/0"));
    expect_goes_on_without(*engine, "guest:CPU", "crash");
    EXPECT_THAT(engine->status().last_output, HasSubstr("is lost"));
}

TEST_F(TandemEngineTest, WhenTheOwnerAbortsTheOtherDeviceWorksAlone) {
    auto engine = start_ready(options("fault=abort/CPU/40"));
    expect_goes_on_without(*engine, "CPU", "crash");
}

TEST_F(TandemEngineTest, AMemberThatHangsIsLeftOut) {
    EngineOptions impatient = options("fault=hang/guest:CPU/1");
    impatient.hang_timeout = seconds(3);
    auto engine = start_ready(impatient);
    expect_goes_on_without(*engine, "guest:CPU", "hang");
    EXPECT_EQ(engine->status().hangs, 1u);
}

TEST_F(TandemEngineTest, AMemberThatAbortsWhileTheModelLoadsIsLeftOut) {
    auto engine = EngineProcess::start(options("fault=abort/CPU/0"));
    ASSERT_TRUE(engine.ok());
    ASSERT_TRUE((*engine)->wait_ready(kGenerous).ok());
    EXPECT_EQ((*engine)->generation(), 2u);
    EXPECT_EQ((*engine)->status().failed_member, "CPU");
}

TEST_F(TandemEngineTest, StrictStartsAgainWithAllMembers) {
    EngineOptions strict = options("strict=1,fault=abort/guest:CPU/1");
    strict.strict = true;
    auto engine = start_ready(strict);
    ask(*engine, long_prompt(), 4);
    ASSERT_TRUE(eventually([&] { return engine->generation() == 2 && engine->status().state == EngineState::ready; }));
    EXPECT_EQ(engine->status().failed_member, "guest:CPU");
    EXPECT_TRUE(engine->status().excluded.empty());
    EXPECT_EQ(engine->tandem().name, "Tandem0");
}

TEST_F(TandemEngineTest, AMemberCanBeLeftOutFromTheStart) {
    EngineOptions without = options("fault=abort/guest:CPU/0");
    without.excluded = {{"guest:CPU", "as the user wishes"}};
    auto engine = start_ready(without);
    EXPECT_EQ(answer_of(*engine, long_prompt(), 4)["timings"]["onebit"]["excluded"]["guest:CPU"], "as the user wishes");
    EXPECT_EQ(engine->tandem().name, "");
    EXPECT_EQ(engine->generation(), 1u);
}

}  // namespace
}  // namespace onebit
