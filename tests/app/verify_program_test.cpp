// If this fails, `1bit verify` passes a device that computes other things, or scripts cannot read what it found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/real_program.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

class VerifyProgram : public RealProgram {
protected:
    ProgramResult run(Texts arguments) {
        arguments.insert(arguments.begin(), "verify");
        return RealProgram::run(arguments);
    }
};

TEST_F(VerifyProgram, HelpHasExamples) {
    const ProgramResult help = run({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.output, AllOf(HasSubstr("Examples:\n  1bit verify"), HasSubstr("--prefill-device")));
    EXPECT_EQ(help.error_output, "");
}

TEST_F(VerifyProgram, OneDeviceAgainstItselfIsRight) {
    const ProgramResult result = run({"--a", "cpu", "--b", "cpu", "--prompt", "1,17", "--slots", "1,4", "--generate",
                                      "4", "--ubatch-size", "16", "-t", "1", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error_output;
    const Json json = Json::parse(result.output);
    EXPECT_EQ(json["right"], true);
    EXPECT_EQ(json["tested"], "CPU");
    EXPECT_EQ(json["cases"].size(), 4u);
    EXPECT_EQ(json["cases"][3]["slots"], 4);
    EXPECT_EQ(json["cases"][3]["tested"]["positions"], 20);
    EXPECT_GT(json["cases"][0]["tested"]["perplexity"], 1);
    const ProgramResult text =
        run({"--a", "cpu", "--b", "cpu", "--prompt", "2", "--slots", "1", "--generate", "1", "-t", "1"});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.output, AllOf(HasSubstr("mean KL"), HasSubstr("the same within the limits")));
}

TEST_F(VerifyProgram, WrongUsageIsTwoAndSaysWhat) {
    const std::vector<std::pair<Texts, std::string>> cases = {
        {{"--a", "cpu gpu"}, "--a"},
        {{"--a", "--device vulkan --prefil-device cpu"}, "'--prefil-device'"},
        {{"--b", "--device cpu --prefill-min-tokens 3", "--a", "cpu"}, "--prefill-device"},
        {{"--prompt", "1,x"}, "--prompt"},
        {{"--slots", "0"}, "--slots"},
        {{"--slots", "65"}, "--slots"},
        {{"--generate", "0"}, "--generate"},
        {{"--max-kl", "nan"}, "--max-kl"},
        {{"--max-mean-kl", "-1"}, "--max-mean-kl"},
        {{"--flash-attn", "maybe"}, "--flash-attn"},
        {{"--a", "cpu", "--b", "cpu", "--cache-type-k", "q9"}, "--cache-type-k"},
        {{"--a", "cpu", "--b", "cpu", "--prompt", "100000"}, "context"},
    };
    for (const auto& [arguments, part] : cases) {
        const ProgramResult result = run(arguments);
        EXPECT_EQ(result.exit_code, 2) << part << "\n" << result.error_output;
        EXPECT_THAT(result.error_output, HasSubstr(part));
        EXPECT_EQ(result.output, "");
    }
    EXPECT_EQ(run({"--a", "cpu", "--b", "cpu", "missing.gguf"}).exit_code, 1);
    EXPECT_EQ(run({"--a", "Metal0", "--b", "cpu"}).exit_code, 1);
}

// two devices never agree to the last bit: a bound of nothing must be passed, the usual one must not
TEST_F(VerifyProgram, PastABoundIsOne) {
    if (!has_vulkan()) GTEST_SKIP() << "no Vulkan0 on this machine";
    Texts words = {"--a",        "Vulkan0", "--b",           "cpu", "--prompt", "17", "--slots", "1",
                   "--generate", "2",       "--ubatch-size", "32",  "-t",       "1",  "--json"};
    const ProgramResult right = run(words);
    EXPECT_EQ(right.exit_code, 0) << right.output << right.error_output;
    words.insert(words.end(), {"--max-mean-kl", "0", "--max-kl", "0"});
    const ProgramResult wrong = run(words);
    EXPECT_EQ(wrong.exit_code, 1) << wrong.error_output;
    const Json json = Json::parse(wrong.output);
    EXPECT_EQ(json["right"], false);
    EXPECT_THAT(json["cases"][0]["faults"][0].get<std::string>(), HasSubstr("mean KL"));
}

}  // namespace
}  // namespace onebit
