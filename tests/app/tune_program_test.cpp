// If this fails, `1bit tune` says nothing of use, or what it keeps is not what serve and run find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/real_program.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class TuneProgram : public RealProgram {
protected:
    size_t stored() const { return cached("routes"); }
};

TEST_F(TuneProgram, HelpHasExamples) {
    const ProgramResult help = run({"tune", "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.output, AllOf(HasSubstr("Usage: 1bit tune "), HasSubstr("Examples:\n  1bit tune"),
                                   HasSubstr("--prefill-device")));
}

TEST_F(TuneProgram, WrongUsageIsTwoAndSaysWhat) {
    const std::vector<std::pair<Texts, std::string>> cases = {
        {{"--prefill-device", "cpu"}, "--prefill-device"},
        {{"--device", "cpu", "--prefill-device", "cpu"}, "--prefill-device"},
        {{"--device", "cpu,"}, "--device"},
        {{"--rounds", "0"}, "--rounds"},
        {{"--ubatch-size", "x"}, "--ubatch-size"},
        {{"--flash-attn", "maybe"}, "--flash-attn"},
        {{"--device", "cpu", "--cache-type-k", "q9"}, "--cache-type-k"},
    };
    for (const auto& [more, part] : cases) {
        Texts words = {"tune"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramResult result = run(words);
        EXPECT_EQ(result.exit_code, 2) << part << "\n" << result.error_output;
        EXPECT_THAT(result.error_output, HasSubstr(part));
        EXPECT_EQ(result.output, "");
    }
    EXPECT_EQ(run({"tune", "missing.gguf", "--device", "cpu"}).exit_code, 1);
    EXPECT_EQ(run({"tune", "--device", "Metal0"}).exit_code, 1);
    EXPECT_EQ(stored(), 0u);
}

TEST_F(TuneProgram, OneDeviceIsMeasuredAndDoesEverything) {
    const Texts words = {"tune", "--device", "cpu", "--rounds", "1", "-c", "256", "--ubatch-size", "64"};
    Texts as_json = words;
    as_json.push_back("--json");
    const ProgramResult result = run(as_json);
    ASSERT_EQ(result.exit_code, 0) << result.error_output;
    const Json json = Json::parse(result.output);
    EXPECT_EQ(json["members"], Json({"CPU"}));
    EXPECT_EQ(json["cells"].size(), 4u) << "1, 8, 32 and 64 tokens at depth 0";
    for (const Json& cell : json["cells"]) EXPECT_GT(cell["tokens_per_second"][0], 0);
    EXPECT_EQ(json["route"]["decode"], "CPU");
    EXPECT_EQ(json["route"]["prefill_min_tokens"], nullptr);
    EXPECT_EQ(json["first_token"].size(), 4u);
    EXPECT_GT(json["first_token"][3]["seconds"], json["first_token"][0]["seconds"]);
    EXPECT_EQ(json["stored"], nullptr);
    const ProgramResult text = run(words);
    EXPECT_THAT(text.output,
                AllOf(HasSubstr("tokens/s"), HasSubstr("expected time to first token"), HasSubstr("CPU for everything"),
                      HasSubstr("not stored: with one device there is nothing")));
}

TEST_F(TuneProgram, WhatTuneKeepsIsWhatRunUses) {
    if (!has_vulkan()) GTEST_SKIP() << "no Vulkan0 on this machine";
    const ProgramResult tuned = run({"tune", "--device", "vulkan", "--prefill-device", "cpu", "--rounds", "1", "-c",
                                     "64", "--ubatch-size", "32", "-t", "1", "--json"});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.error_output;
    const Json json = Json::parse(tuned.output);
    EXPECT_EQ(json["members"], Json({"Vulkan0", "CPU"}));
    EXPECT_EQ(json["source"], "tune");
    EXPECT_GE(json["switch_us"], 0);
    EXPECT_EQ(json["cells"].size(), 3u);
    EXPECT_EQ(json["trials"].size(), 2u);
    EXPECT_EQ(json["route"]["decode"], "Vulkan0") << "as it was named";
    EXPECT_NE(json["stored"], nullptr);
    EXPECT_EQ(stored(), 1u);

    const auto ask = [&](const Texts& more, const Texts& llama) {
        Texts words = {"run", "builtin", "Hello", "--device", "vulkan",    "--prefill-device", "cpu",      "-n",
                       "1",   "-c",      "256",   "-v",       "--offline", "--config",         "/dev/null"};
        words.insert(words.end(), more.begin(), more.end());
        words.insert(words.end(), {"--", "-t", "1"});
        words.insert(words.end(), llama.begin(), llama.end());
        const ProgramResult answer = run(words);
        EXPECT_EQ(answer.exit_code, 0) << answer.error_output;
        return answer.error_output;
    };
    const std::string reason = json["route"]["reason"];
    EXPECT_THAT(ask({"--prefill-min-tokens", "auto"}, {"-ub", "32"}),
                HasSubstr("auto: " + reason + " (stored by tune)"));
    // another ubatch was not measured: the fixed rule for software Vulkan
    EXPECT_THAT(ask({}, {"-ub", "16"}), HasSubstr("auto: prompts of 16 tokens and more on CPU: the fixed rule"));
    // a number is no choice
    EXPECT_THAT(ask({"--prefill-min-tokens", "9"}, {"-ub", "32"}), Not(HasSubstr("auto: ")));
}

}  // namespace
}  // namespace onebit
