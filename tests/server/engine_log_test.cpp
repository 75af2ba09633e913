// If this fails, the reason why an engine died is lost, or its chatter fills the supervisor's log.
#include "server/supervisor/engine_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit {
namespace {

using ::testing::ElementsAre;

LogLevel level(std::string_view line, std::string_view expected_text) {
    std::string_view text;
    const LogLevel level = level_of_engine_line(line, &text);
    EXPECT_EQ(text, expected_text);
    return level;
}

TEST(EngineLine, LevelsOfLlamaCpp) {
    EXPECT_EQ(level("0.00.123.456 I srv  load: hello", "srv  load: hello"), LogLevel::verbose);
    EXPECT_EQ(level("0.00.123.456 W srv  load: hello", "srv  load: hello"), LogLevel::warning);
    EXPECT_EQ(level("12.59.123.456 E no memory", "no memory"), LogLevel::error);
    EXPECT_EQ(level("D detail", "detail"), LogLevel::debug);
    EXPECT_EQ(level("E ", ""), LogLevel::error);
    EXPECT_EQ(level("plain words", "plain words"), LogLevel::verbose);
    EXPECT_EQ(level("", ""), LogLevel::verbose);
    EXPECT_EQ(level("E", "E"), LogLevel::verbose);
    EXPECT_EQ(level("0.00.123.456", "0.00.123.456"), LogLevel::verbose);
    EXPECT_EQ(level("0.00.123.456 ", "0.00.123.456 "), LogLevel::verbose);
    EXPECT_EQ(level("3 E. coli", "3 E. coli"), LogLevel::verbose);
    EXPECT_EQ(level("error: invalid argument: --foo", "error: invalid argument: --foo"), LogLevel::error);
    EXPECT_EQ(level("/a/b.cpp:7: GGML_ASSERT(x) failed", "/a/b.cpp:7: GGML_ASSERT(x) failed"), LogLevel::error);
}

TEST(EngineLine, OursKeepTheirLevel) {
    EXPECT_EQ(level("03:42:38.123 info tandem: Tandem0: prefill", "tandem: Tandem0: prefill"), LogLevel::info);
    EXPECT_EQ(level("03:42:38.123 warning a: b", "a: b"), LogLevel::warning);
    EXPECT_EQ(level("03:42:38.123 error a: b", "a: b"), LogLevel::error);
    EXPECT_EQ(level("03:42:38.123 verbose a: b", "a: b"), LogLevel::verbose);
    EXPECT_EQ(level("03:42:38.123 debug a: b", "a: b"), LogLevel::debug);
    for (const char* other : {"03:42:38.123 ", "03:42:38.123 news: a", "03:42:38.12 info a", "3:42:38.123 info a",
                              "03-42:38.123 info a", "03:42:38.123 info"})
        EXPECT_EQ(level(other, other), LogLevel::verbose) << other;
}

TEST(EngineLog, LinesCutAnywhereComeOutWhole) {
    const std::string text = "one\ntwo\n\nthree";
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        EngineLog log("test");
        log.append(std::string_view(text).substr(0, cut));
        log.append(std::string_view(text).substr(cut));
        log.finish();
        EXPECT_THAT(log.last_lines(), ElementsAre("one", "two", "three"));
    }
}

TEST(EngineLog, KeepsTheLastTwentyLines) {
    EngineLog log("test");
    for (int i = 0; i < 1000; ++i) log.append("line " + std::to_string(i) + "\n");
    ASSERT_EQ(log.last_lines().size(), EngineLog::kLines);
    EXPECT_EQ(log.last_lines().front(), "line 980");
    EXPECT_EQ(log.last_lines().back(), "line 999");
    log.clear();
    EXPECT_TRUE(log.last_lines().empty());
    EXPECT_EQ(log.summary(), "");
}

TEST(EngineLog, HugeAndHostileLinesAreBounded) {
    EngineLog log("test");
    for (int i = 0; i < 1000; ++i) log.append(std::string(10'000, 'x'));
    log.append("\n\x1b[31m red \xff\xfe\n");
    const auto lines = log.last_lines();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], std::string(EngineLog::kLineBytes, 'x') + "...");
    EXPECT_EQ(lines[1].find('\x1b'), std::string::npos);
}

TEST(EngineLog, SummaryPrefersWhatWentWrong) {
    EngineLog log("test");
    log.append("0.00.001.000 I starting\n");
    EXPECT_EQ(log.summary(), "starting");
    log.append("0.00.001.000 E model is corrupt\n0.00.001.000 I bye\n");
    EXPECT_EQ(log.summary(), "model is corrupt");
}

TEST(EngineLog, WrongArgumentsAreToldFromOtherErrors) {
    for (const char* line :
         {"error: invalid argument: --bogus", "error while handling argument \"-c\": stoi", "invalid device: X",
          "error while handling environment variable \"LLAMA_ARG_THREADS\": stoi"}) {
        EngineLog log("test");
        log.append(std::string("a line before\n") + line + "\n\nusage:\n");
        EXPECT_TRUE(log.tells_wrong_arguments()) << line;
    }
    EngineLog log("test");
    EXPECT_FALSE(log.tells_wrong_arguments());
    log.append("E error: model is corrupt\nerror loading model\nsaid: error: invalid argument: x\n");
    EXPECT_FALSE(log.tells_wrong_arguments());
}

}  // namespace
}  // namespace onebit
