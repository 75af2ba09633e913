// If this fails, a wrong command line is not explained, or a right one is read wrongly.
#include "app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

struct Seen {
    int runs = 0;
    std::string model, file, text;
    std::optional<uint32_t> slots;
    std::vector<std::string> keys, after;
} seen;

void add_one(CLI::App& app, CommandRun* run) {
    CLI::App* command = app.add_subcommand("serve", "Serves.");
    command->add_option("MODEL", seen.model, "A model")->type_name("");
    add_number(command, "-c,--slots", "Slots", &seen.slots, 1, 256);
    add_repeated(command, "--api-key", "KEY", "Keys", &seen.keys);
    command->add_option("--config", seen.file, "A file")->type_name("FILE");
    command->add_option("--system", seen.text, "A text")->type_name("TEXT");
    command->footer("Examples:\n  1bit serve");
    command->callback([run] {
        *run = [] {
            seen.runs++;
            seen.after = arguments_after_dashes();
            return 7;
        };
    });
}

void add_other(CLI::App& app, CommandRun* run) {
    CLI::App* command = app.add_subcommand("models", "Lists.");
    command->callback([run] { *run = [] { return 0; }; });
}

void add_hidden(CLI::App& app, CommandRun* run) {
    CLI::App* command = app.add_subcommand("engine", "Hidden.");
    command->group("");
    command->callback([run] {
        *run = [] {
            seen.after = arguments_after_dashes();
            return 0;
        };
    });
}

struct Outcome {
    int code;
    std::string output, error;
};

Outcome run(std::vector<std::string> arguments) {
    seen = {};
    static constexpr AddCommand kCommands[] = {add_one, add_other, add_hidden};
    CommandLine line(kCommands);
    CaptureStdout();
    CaptureStderr();
    int code = line.run(std::move(arguments));
    std::string output = GetCapturedStdout();
    return {code, output, GetCapturedStderr()};
}

TEST(CommandLine, RunsTheCommandAndReturnsItsCode) {
    EXPECT_EQ(run({"serve", "m", "--slots", "4", "--api-key", "[a,b]", "--api-key=c,d"}).code, 7);
    EXPECT_EQ(seen.runs, 1);
    EXPECT_EQ(seen.model, "m");
    EXPECT_EQ(seen.slots, 4u);
    EXPECT_EQ(seen.keys, (std::vector<std::string>{"[a,b]", "c,d"}));
    EXPECT_EQ(run({"serve"}).code, 7);
    EXPECT_FALSE(seen.slots.has_value());
}

TEST(CommandLine, ARepeatedListTakesOneWordEach) {
    EXPECT_EQ(run({"serve", "--api-key", "a", "m"}).code, 7);
    EXPECT_EQ(seen.model, "m");
    EXPECT_EQ(seen.keys, (std::vector<std::string>{"a"}));
}

TEST(CommandLine, TheLastOfTwoWins) {
    EXPECT_EQ(run({"serve", "-c", "1", "--slots=2"}).code, 7);
    EXPECT_EQ(seen.slots, 2u);
}

TEST(CommandLine, WhatFollowsTwoDashesIsUntouched) {
    std::vector<std::string> rest = {"--flash-attn", "on", "--help", "-v", "", "serve", "[1,2]", "--", "--api-key"};
    std::vector<std::string> all = {"serve", "m", "--"};
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(run(all).code, 7);
    EXPECT_EQ(seen.after, rest);
    EXPECT_EQ(seen.model, "m");
    EXPECT_TRUE(seen.keys.empty());
    EXPECT_EQ(run({"engine", "--", "-m", "x"}).code, 0);
    EXPECT_EQ(seen.after, (std::vector<std::string>{"-m", "x"}));
    EXPECT_EQ(run({"serve", "--"}).code, 7);
    EXPECT_TRUE(seen.after.empty());
    EXPECT_EQ(run({"serve"}).code, 7);
    EXPECT_TRUE(seen.after.empty());
}

TEST(CommandLine, AnEmptyValueIsRefusedByTheOptionsName) {
    const std::pair<std::vector<std::string>, const char*> wrong[] = {
        {{"serve", ""}, "MODEL"},
        {{"serve", "--api-key", ""}, "--api-key"},
        {{"serve", "--api-key", "a", "--api-key", ""}, "--api-key"},
        {{"serve", "--config", ""}, "--config"},
        {{"serve", "--config=", "m"}, "--config"},
        {{"serve", "--config="}, "--config"},
        {{"serve", "-c", ""}, "--slots"},
    };
    for (const auto& [words, name] : wrong) {
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 2) << name;
        EXPECT_THAT(outcome.error, AllOf(HasSubstr(name), HasSubstr("found nothing"), HasSubstr("--help"))) << name;
        EXPECT_EQ(seen.runs, 0);
    }
    EXPECT_EQ(run({"serve", "--system", "", "m"}).code, 7);
    EXPECT_EQ(run({"serve", "--system=", "m"}).code, 7);
    EXPECT_EQ(seen.model, "m");
    EXPECT_EQ(seen.text, "");
    EXPECT_EQ(run({"serve", "--", "--config="}).code, 7);
    EXPECT_EQ(seen.after, (std::vector<std::string>{"--config="}));
}

TEST(CommandLine, AWordThatIsACommandMayBeAnArgument) {
    EXPECT_EQ(run({"serve", "models"}).code, 7);
    EXPECT_EQ(seen.model, "models");
}

TEST(CommandLine, UnknownNamesGetTheNearest) {
    Outcome command = run({"srve"});
    EXPECT_EQ(command.code, 2);
    EXPECT_EQ(command.output, "");
    EXPECT_THAT(command.error, AllOf(HasSubstr("'srve'"), HasSubstr("did you mean 'serve'?")));
    Outcome flag = run({"serve", "--slotz", "4"});
    EXPECT_EQ(flag.code, 2);
    EXPECT_THAT(flag.error, AllOf(HasSubstr("--slotz"), HasSubstr("did you mean --slots?"), HasSubstr("1bit serve")));
    EXPECT_THAT(run({"serve", "--slotz=4"}).error, HasSubstr("--slotz: expected"));
    EXPECT_THAT(run({"--versoin"}).error, HasSubstr("did you mean --version?"));
    Outcome far = run({"serve", "--completely-different"});
    EXPECT_EQ(far.code, 2);
    EXPECT_EQ(far.error.find("did you mean"), std::string::npos);
    // the hidden command is not offered
    EXPECT_EQ(run({"engin"}).error.find("engine"), std::string::npos);
    EXPECT_EQ(seen.runs, 0);
}

TEST(CommandLine, WrongValuesNameFlagExpectedAndFound) {
    for (const char* wrong : {"0", "257", "-1", "x", "1.5", "", "99999999999999999999", " 4", "4 "}) {
        Outcome outcome = run({"serve", std::string("--slots=") + wrong, "m"});
        if (std::string(wrong).empty()) continue;  // takes the next word, as --slots m would
        EXPECT_EQ(outcome.code, 2) << wrong;
        EXPECT_THAT(outcome.error, AllOf(HasSubstr("--slots: expected a whole number from 1 to 256"),
                                         HasSubstr("found '" + std::string(wrong) + "'")))
            << wrong;
    }
    EXPECT_EQ(run({"serve", "--slots"}).code, 2);
    EXPECT_EQ(run({"serve", "--slots=1"}).code, 7);
    EXPECT_EQ(run({"serve", "--slots=256"}).code, 7);
}

TEST(CommandLine, TooManyWordsAreNamed) {
    Outcome outcome = run({"models", "what"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("1bit models"), HasSubstr("'what'")));
    EXPECT_EQ(run({"serve", "a", "b"}).code, 2);
}

TEST(CommandLine, HelpAndVersion) {
    Outcome help = run({"--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.output, AllOf(HasSubstr("serve"), HasSubstr("models"), HasSubstr("Examples:")));
    EXPECT_EQ(help.output.find("engine"), std::string::npos);
    EXPECT_EQ(help.error, "");
    Outcome serve = run({"serve", "--help"});
    EXPECT_EQ(serve.code, 0);
    EXPECT_THAT(serve.output, AllOf(HasSubstr("Usage: 1bit serve "), HasSubstr("--slots"), HasSubstr("--verbose"),
                                    HasSubstr("Examples:")));
    EXPECT_EQ(run({"help", "serve"}).output, serve.output);
    EXPECT_EQ(run({"help"}).output, help.output);
    EXPECT_EQ(run({"serve", "-h"}).output, serve.output);
    for (const std::vector<std::string>& unknown :
         {std::vector<std::string>{"serv", "--help"}, {"--help", "serv"}, {"help", "serv"}}) {
        Outcome outcome = run(unknown);
        EXPECT_EQ(outcome.code, 2);
        EXPECT_EQ(outcome.output, "");
        EXPECT_THAT(outcome.error, AllOf(HasSubstr("'serv'"), HasSubstr("did you mean 'serve'")));
    }
    Outcome version = run({"--version"});
    EXPECT_EQ(version.code, 0);
    EXPECT_THAT(version.output, AllOf(HasSubstr("1bit "), HasSubstr("llama.cpp")));
    EXPECT_EQ(seen.runs, 0);
}

TEST(CommandLine, NothingAtAllShowsTheHelpAsAnError) {
    Outcome outcome = run({});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.error, HasSubstr("serve"));
}

TEST(CommandLine, VerboseAndQuietBeforeAndAfterTheCommand) {
    run({"serve", "-v"});
    EXPECT_EQ(log_level(), LogLevel::verbose);
    run({"-v", "serve", "-v"});
    EXPECT_EQ(log_level(), LogLevel::debug);
    run({"serve", "-vvvvv"});
    EXPECT_EQ(log_level(), LogLevel::debug);
    run({"serve", "--quiet"});
    EXPECT_EQ(log_level(), LogLevel::warning);
    run({"-qqq", "serve"});
    EXPECT_EQ(log_level(), LogLevel::error);
    run({"serve"});
    EXPECT_EQ(log_level(), LogLevel::info);
}

TEST(CommandLine, HostileWordsAreHarmless) {
    for (const std::string& word :
         {std::string(1 << 16, 'a'), std::string("\xff\xfe"), std::string("\x1b[2J"), std::string("++"),
          std::string("-"), std::string("---"), std::string("--="), std::string("-=x"), std::string("--slots=\n\n")}) {
        Outcome outcome = run({word});
        EXPECT_EQ(outcome.code, 2) << word.substr(0, 20);
        EXPECT_EQ(outcome.error.find('\x1b'), std::string::npos);
        run({"serve", word});
        run({"serve", "--slots", word});
    }
}

}  // namespace
}  // namespace onebit
