// If this fails, the program does not behave at the shell: exit codes, help, output that other programs read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "server/supervisor/run_program.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Texts = std::vector<std::string>;

constexpr std::chrono::minutes kLimit{3};

const Texts kCommands = {"serve",  "run",  "devices", "doctor", "bench",   "plan",
                         "models", "pull", "unload",  "ps",     "version", "completions"};

class Program : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("ONEBIT_PROGRAM");
        ASSERT_NE(program, nullptr);
        program_ = program;
        ASSERT_TRUE(std::filesystem::exists(program_)) << program_;
        std::string name = testing::TempDir() + "program-XXXXXX";
        folder_ = mkdtemp(name.data());
        for (const char* variable :
             {"HF_HUB_CACHE", "HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "OLLAMA_MODELS", "LMSTUDIO_HOME", "ONEBIT_HOST",
              "ONEBIT_API_KEY", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"})
            ::unsetenv(variable);
        ::setenv("HOME", folder_.c_str(), 1);
        ::setenv("ONEBIT_MODELS", (folder_ / "models").c_str(), 1);
        ::setenv("ONEBIT_CACHE", (folder_ / "cache").c_str(), 1);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    ProgramResult run(const Texts& arguments) {
        Result<ProgramResult> result = run_program(program_, arguments, kLimit);
        EXPECT_TRUE(result.ok()) << result.error().message();
        return result.ok() ? *result : ProgramResult{};
    }
    // In bash, with the program as $P.
    ProgramResult shell(const std::string& script) {
        ::setenv("P", program_.c_str(), 1);
        Result<ProgramResult> result = run_program("/bin/bash", {"-c", script}, kLimit);
        EXPECT_TRUE(result.ok()) << result.error().message();
        return result.ok() ? *result : ProgramResult{};
    }
    std::filesystem::path program_, folder_;
};

TEST_F(Program, EveryCommandHasHelpWithExamples) {
    ProgramResult top = run({"--help"});
    EXPECT_EQ(top.exit_code, 0);
    EXPECT_EQ(top.output.find("engine "), std::string::npos) << "the hidden command is shown";
    for (const std::string& command : kCommands) {
        EXPECT_THAT(top.output, HasSubstr("  " + command + " "));
        ProgramResult help = run({command, "--help"});
        EXPECT_EQ(help.exit_code, 0) << command;
        EXPECT_THAT(help.output, AllOf(HasSubstr("Examples:\n  1bit"), HasSubstr("--verbose"),
                                       HasSubstr("Usage: 1bit " + command + " ")))
            << command;
        EXPECT_EQ(help.error_output, "") << command;
    }
    EXPECT_THAT(top.output,
                AllOf(HasSubstr("Usage: 1bit ["), HasSubstr("3 where plan finds that a model does not fit")));
    EXPECT_THAT(run({"kernels", "warm", "--help"}).output, HasSubstr("Usage: 1bit kernels warm "));
}

TEST_F(Program, WrongUsageIsTwoAndSaysWhat) {
    const std::vector<std::pair<Texts, std::string>> cases = {
        {{"srve"}, "did you mean 'serve'?"},
        {{"modles"}, "did you mean 'models'?"},
        {{"serve", "--prot", "80"}, "did you mean --port?"},
        {{"serve", "--port", "65536"}, "from 0 to 65535"},
        {{"serve", "--keep-alive", "soon"}, "'soon'"},
        {{"run", "--temperature", "hot", "x"}, "'hot'"},
        {{"run", "--json", "--max-tokens", "0", "x"}, "--max-tokens"},
        {{"models", "--jsno"}, "did you mean --json?"},
        {{"models", "extra"}, "'extra'"},
        {{"pull"}, "REFERENCE"},
        {{"unload"}, "MODEL"},
        {{"completions"}, "SHELL"},
        {{"completions", "tcsh"}, "'tcsh'"},
        {{"ps", "--port", "0"}, "--port"},
        {{"ps", "--url", "https://x"}, "http://"},
        {{"version", "--help-me"}, "--help"},
    };
    for (const auto& [arguments, text] : cases) {
        ProgramResult result = run(arguments);
        std::string shown = testing::PrintToString(arguments);
        EXPECT_TRUE(result.exit_code == 2 || (result.exit_code == 1 && arguments[0] == "ps"))
            << shown << result.exit_code;
        EXPECT_EQ(result.output, "") << shown;
        EXPECT_THAT(result.error_output, HasSubstr(text)) << shown;
        EXPECT_EQ(std::count(result.error_output.begin(), result.error_output.end(), '\n'), 1)
            << shown << result.error_output;
    }
    EXPECT_EQ(run({}).exit_code, 2);
}

TEST_F(Program, FailuresAreOneAndNameTheirThing) {
    for (const Texts& arguments :
         {Texts{"serve", "/no/such.gguf"}, Texts{"run", "/no/such.gguf", "hi"},
          Texts{"serve", "--config", "/no/such.yaml"}, Texts{"serve", "--api-key-file", "/no/such.keys"},
          Texts{"pull", "org/no-such-model", "--offline"}}) {
        ProgramResult result = run(arguments);
        EXPECT_EQ(result.exit_code, 1) << testing::PrintToString(arguments) << result.error_output;
        EXPECT_THAT(result.error_output, HasSubstr("no")) << testing::PrintToString(arguments);
        EXPECT_THAT(
            result.error_output,
            HasSubstr(arguments[1] == "--config" || arguments[1] == "--api-key-file" ? arguments[2] : arguments[1]));
    }
}

TEST_F(Program, AConfigurationWithAnErrorIsTwo) {
    std::ofstream(folder_ / "bad.yaml") << "host: 127.0.0.1\nprot: 80\n";
    ProgramResult result = run({"serve", "--config", folder_ / "bad.yaml"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error_output, AllOf(HasSubstr("bad.yaml:2"), HasSubstr("did you mean 'port'?")));
}

// DEV17
TEST_F(Program, AMissingDeviceFailsTheStart) {
    for (const char* device : {"HRX0", "no-such-device"}) {
        for (const Texts& arguments :
             {Texts{"serve", "--port", "0", "--device", device}, Texts{"run", "--device", device, "hi"}}) {
            ProgramResult result = run(arguments);
            EXPECT_EQ(result.exit_code, 1) << result.error_output;
            EXPECT_THAT(result.error_output, HasSubstr(device));
        }
    }
}

// MF18, BD17
TEST_F(Program, VersionNamesThePin) {
    Json version = Json::parse(run({"version", "--json"}).output);
    std::ifstream pins(std::filesystem::path(ONEBIT_SOURCE_DIR) / "third_party/pins.env");
    int seen = 0;
    for (std::string line; std::getline(pins, line);) {
        if (line.starts_with("LLAMA_TAG=")) seen += version["llama_cpp"]["tag"] == line.substr(10);
        if (line.starts_with("LLAMA_TREE=")) seen += version["llama_cpp"]["tree"] == line.substr(11);
        if (line.starts_with("LLAMA_PIN_DATE=")) seen += version["llama_cpp"]["pin_date"] == line.substr(15);
    }
    EXPECT_EQ(seen, 3) << version;
    EXPECT_EQ(version["program"], std::filesystem::canonical(program_).string());
    EXPECT_EQ(version["backends"][0], "CPU");
    std::string text = run({"version"}).output;
    EXPECT_THAT(text, AllOf(HasSubstr(version["llama_cpp"]["tag"].get<std::string>()),
                            HasSubstr(version["llama_cpp"]["pin_date"].get<std::string>())));
    EXPECT_THAT(run({"--version"}).output, HasSubstr("1bit "));
}

TEST_F(Program, ModelsOfAFolder) {
    std::filesystem::create_directories(folder_ / "models/org/repo");
    std::filesystem::path data = std::getenv("ONEBIT_TEST_DATA") ? std::getenv("ONEBIT_TEST_DATA") : "";
    std::filesystem::path whole;
    for (const auto& entry : std::filesystem::directory_iterator(data))
        if (entry.path().extension() == ".gguf" &&
            (whole.empty() || entry.file_size() < std::filesystem::file_size(whole)))
            whole = entry.path();
    ASSERT_FALSE(whole.empty()) << data;
    std::filesystem::copy_file(whole, folder_ / "models/org/repo/good.gguf");
    // MF05: named, with the reason, and not offered as usable
    std::ofstream(folder_ / "models/org/repo/cut.gguf") << std::ifstream(whole, std::ios::binary).rdbuf();
    std::filesystem::resize_file(folder_ / "models/org/repo/cut.gguf", std::filesystem::file_size(whole) / 2);

    ProgramResult result = run({"models", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error_output;
    Json json = Json::parse(result.output);
    uint64_t total = 0;
    bool good = false, cut = false;
    for (const Json& model : json["models"]) {
        total += model["bytes"].get<uint64_t>();
        std::string files = model["files"].dump();
        if (files.find("good.gguf") != std::string::npos)
            good = model["problem"].is_null() && model["bytes"] == std::filesystem::file_size(whole);
        if (files.find("cut.gguf") != std::string::npos) cut = model["problem"].is_string();
    }
    EXPECT_TRUE(good) << json.dump(2);
    EXPECT_TRUE(cut) << json.dump(2);
    EXPECT_EQ(json["total_bytes"], total);
    EXPECT_THAT(run({"models", "--paths"}).output, HasSubstr((folder_ / "models/org/repo/good.gguf").string() + "\n"));
    EXPECT_THAT(run({"models"}).output, AllOf(HasSubstr("MODEL"), HasSubstr("cannot be used"), HasSubstr("models, ")));
}

TEST_F(Program, AClosedPipeEndsQuietly) {
    ProgramResult result = shell("trap '' PIPE; \"$P\" completions man | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}");
    EXPECT_EQ(result.error_output, "");
    EXPECT_TRUE(result.output == "141\n" || result.output == "0\n") << result.output;
    result = shell("set -o pipefail; \"$P\" models | head -1");
    EXPECT_EQ(result.error_output, "");
}

TEST_F(Program, AFullDiskIsAnError) {
    ProgramResult result = shell("\"$P\" version >/dev/full");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error_output, HasSubstr("standard output"));
}

TEST_F(Program, NoColourWithoutATerminal) {
    for (const Texts& arguments : {Texts{"--help"}, Texts{"models"}, Texts{"version"}, Texts{"srve"}}) {
        ProgramResult result = run(arguments);
        EXPECT_EQ((result.output + result.error_output).find('\x1b'), std::string::npos) << arguments[0];
    }
}

TEST_F(Program, PsWithoutAServerSaysWhatToDo) {
    // a port that was just free, in a range that is not handed out to clients
    ProgramResult result = run({"ps", "--port", "9"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error_output, AllOf(HasSubstr("127.0.0.1:9"), HasSubstr("1bit serve")));
    EXPECT_EQ(run({"unload", "x", "--port", "9"}).exit_code, 1);
}

TEST_F(Program, CompletionsOfBashWork) {
    ProgramResult result = shell(R"(
        "$P" completions bash > "$HOME/c" && bash -n "$HOME/c" && . "$HOME/c"
        complete_for() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _1bit; echo "${COMPREPLY[@]}"; }
        complete_for 1bit se
        complete_for 1bit serve --po
        complete_for 1bit completions fi
        complete_for 1bit nonsense x
        touch "$HOME/one.gguf"; cd "$HOME"
        complete_for 1bit run on
        complete_for 1bit serve --config on
        complete_for 1bit serve --host on
        complete_for 1bit serve m -- on)");
    EXPECT_EQ(result.exit_code, 0) << result.error_output;
    EXPECT_EQ(result.output, "serve\n--port\nfish\n\none.gguf\none.gguf\n\none.gguf\n") << result.error_output;
}

TEST_F(Program, ClosedStandardDescriptorsAreNotTakenByOtherFiles) {
    const ProgramResult result = shell(R"(
        "$P" plan builtin --device cpu <&- >&- 2>&-; echo $?
        "$P" version >&-; echo $?
        "$P" completions bash >/dev/full; echo $?
        "$P" run --device cpu -n 1 --offline hi <&- >/dev/null; echo $?)");
    EXPECT_EQ(result.output, "1\n1\n1\n0\n") << result.error_output;
    EXPECT_THAT(result.error_output, AllOf(HasSubstr("Bad file descriptor"), HasSubstr("No space left on device")));
    EXPECT_THAT(result.error_output, Not(HasSubstr("says nothing")));
}

TEST_F(Program, BenchKnowsBeforeItMeasuresThatItsFilesCannotBeWritten) {
    for (const auto& [option, file, part] :
         {std::tuple{"--json", "/no/such/folder/x.json", "/no/such/folder"},
          std::tuple{"--markdown", "/proc/self/x.md", "/proc/self"}, std::tuple{"--plot", "/", "a folder"}}) {
        const ProgramResult result = run({"bench", "--device", "cpu", option, file});
        EXPECT_NE(result.exit_code, 0) << option;
        EXPECT_THAT(result.error_output, AllOf(HasSubstr(part), Not(HasSubstr("loading")))) << option;
        EXPECT_EQ(result.output, "");
    }
}

TEST_F(Program, ArgumentsThatLlamaCppDoesNotTakeAreWrongUsage) {
    for (const Texts& words :
         {Texts{"run", "--device", "cpu", "--offline", "hi", "--", "--bogus"},
          Texts{"serve", "builtin", "--port", "0", "--device", "cpu", "--", "--threads", "many"}}) {
        const ProgramResult result = run(words);
        EXPECT_EQ(result.exit_code, 2) << result.error_output;
        EXPECT_THAT(result.error_output, HasSubstr(words.back() == "many" ? "--threads" : "--bogus"));
        EXPECT_THAT(result.error_output, Not(HasSubstr("starting it again")));
    }
}

TEST_F(Program, NoLibraryIsTakenFromTheFolderItIsCalledIn) {
    const ProgramResult result = shell(R"(
        mkdir "$HOME/here" && cd "$HOME/here"
        for library in $(ldd "$P" | sed -n 's/^[[:space:]]*\(lib[^ ]*\) => .*/\1/p'); do echo none > "$library"; done
        ls | grep -q libc.so && "$P" version)");
    EXPECT_EQ(result.exit_code, 0) << result.error_output;
    EXPECT_THAT(result.output, HasSubstr("1bit "));
}

TEST_F(Program, EmptyValuesAndValuesThatMeanNothingAreWrongUsage) {
    const std::pair<Texts, const char*> wrong[] = {
        {{"serve", ""}, "MODEL"},
        {{"serve", "--host", ""}, "--host"},
        {{"serve", "--config", ""}, "--config"},
        {{"serve", "--api-key-file", ""}, "--api-key-file"},
        {{"serve", "--api-key-file", "/"}, "a folder"},
        {{"serve", "--device="}, "--device"},
        {{"serve", "--preload", ""}, "--preload"},
        {{"serve", "--cors-origin", ""}, "--cors-origin"},
        {{"serve", "--cors-origin", "foo"}, "--cors-origin"},
        {{"serve", "--cors-origin", "http://a/"}, "without a path"},
        {{"serve", "-c", "5"}, "256"},
        {{"run", "-n", "2", "-c", "5", "hi"}, "256"},
        {{"run", "", "hi"}, "MODEL"},
        {{"pull", "--hub", "", "a/b"}, "--hub"},
        {{"ps", "--url", ""}, "--url"},
        {{"ps", "--host", ""}, "--host"},
        {{"bench", "--json", ""}, "--json"},
        {{"verify", "--a", ""}, "--a"},
    };
    for (const auto& [words, part] : wrong) {
        const ProgramResult result = run(words);
        EXPECT_EQ(result.exit_code, 2) << part << result.error_output;
        EXPECT_THAT(result.error_output, HasSubstr(part));
        EXPECT_EQ(result.output, "");
    }
}

TEST_F(Program, CompletionsNameEveryCommandAndFlag) {
    std::string bash = run({"completions", "bash"}).output, zsh = run({"completions", "zsh"}).output;
    std::string fish = run({"completions", "fish"}).output, man = run({"completions", "man"}).output;
    for (const std::string& command : kCommands) {
        EXPECT_THAT(bash, HasSubstr("        " + command + ")"));
        EXPECT_THAT(zsh, HasSubstr("'" + command + ":"));
        EXPECT_THAT(fish, HasSubstr(" -a " + command + " "));
        EXPECT_THAT(man, HasSubstr(".SS 1bit " + command + "\n"));
    }
    for (const char* flag : {"keep-alive", "ctx-size", "drain-timeout"}) {
        EXPECT_THAT(bash, HasSubstr(std::string("--") + flag));
        EXPECT_THAT(zsh, HasSubstr(std::string("--") + flag));
        EXPECT_THAT(fish, HasSubstr(std::string("-l ") + flag));
    }
    EXPECT_EQ(man.find("heartbeat"), std::string::npos) << "the hidden command is in the man page";
    for (const auto& [shell_name, script] : {std::pair{"zsh", zsh}, std::pair{"fish", fish}}) {
        std::ofstream(folder_ / "script") << script;
        ProgramResult checked = shell(std::string("command -v ") + shell_name + " >/dev/null || exit 0; " + shell_name +
                                      " -n \"$HOME/script\"");
        EXPECT_EQ(checked.exit_code, 0) << shell_name << checked.error_output;
    }
}

TEST_F(Program, TheManPageIsRoff) {
    ProgramResult result = shell(R"(
        "$P" completions man > "$HOME/1bit.1"
        command -v groff >/dev/null || exit 77
        groff -man -Tutf8 -ww -z "$HOME/1bit.1" && groff -man -Tascii -P-cbu "$HOME/1bit.1")");
    if (result.exit_code == 77) {
        std::ifstream page(folder_ / "1bit.1");
        std::string first;
        std::getline(page, first);
        EXPECT_THAT(first, HasSubstr(".TH 1BIT 1"));
        return;
    }
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.error_output, "");
    for (const char* text : {"SYNOPSIS", "1bit serve", "--keep-alive", "EXIT STATUS", "3: plan", "ONEBIT_API_KEY"})
        EXPECT_THAT(result.output, HasSubstr(text));
}

// UX18: the whole way, on the CPU
TEST_F(Program, APromptThatDoesNotFitIsAnError) {
    ProgramResult result = shell("printf 'word %.0s' {1..3000} | \"$P\" run builtin --device cpu --ctx-size 256");
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error_output, AllOf(HasSubstr("at most 256 tokens"), HasSubstr("--ctx-size")));
}

TEST_F(Program, RunAnswersFromFlagPipeAndJson) {
    ProgramResult plain = run({"run", "What is the capital of France?", "--device", "cpu", "--temperature", "0"});
    EXPECT_EQ(plain.exit_code, 0) << plain.error_output;
    EXPECT_THAT(plain.output, HasSubstr("Paris"));
    ProgramResult piped =
        shell("echo 'What is the capital of France?' | \"$P\" run --device cpu --temperature 0 --json");
    EXPECT_EQ(piped.exit_code, 0) << piped.error_output;
    Json answer = Json::parse(piped.output);
    EXPECT_THAT(answer["text"].get<std::string>(), HasSubstr("Paris"));
    EXPECT_EQ(answer["devices"], Json::array({"CPU"}));
    EXPECT_EQ(answer["finish_reason"], "stop");
    EXPECT_GT(answer["tokens"]["prompt"], 0);
    EXPECT_GT(answer["timings"]["generated_per_second"], 0);
    ProgramResult cut =
        run({"run", "--device", "cpu", "--max-tokens", "1", "--json", "--prompt", "What is the capital of France?"});
    EXPECT_EQ(Json::parse(cut.output)["tokens"]["generated"], 1);
    EXPECT_EQ(Json::parse(cut.output)["finish_reason"], "length");
}

TEST_F(Program, BenchMeasuresThroughTheServerToo) {  // PF15
    Texts words = {"bench", "--device", "cpu", "--prompt",  "16",  "--depth", "0", "--generate",     "4", "--repeat",
                   "2",     "-t",       "1",   "--clients", "1,3", "--json",  "-", "--check-tokens", "16"};
    ProgramResult result = run(words);
    ASSERT_EQ(result.exit_code, 0) << result.error_output;
    Json served = Json::parse(result.output)["served"];
    ASSERT_EQ(served.size(), 2u);
    for (size_t i = 0; i < served.size(); i++) {
        EXPECT_EQ(served[i]["device"], "CPU");
        EXPECT_EQ(served[i]["clients"], i == 0 ? 1 : 3);
        EXPECT_EQ(served[i]["samples"].size(), 2u);
        EXPECT_GT(served[i]["tokens_per_second"], 0);
        EXPECT_GT(served[i]["first_token_ms"], 0);
    }
    EXPECT_EQ(run({"bench", "--clients", "0"}).exit_code, 2);
    EXPECT_EQ(run({"bench", "--clients", "257"}).exit_code, 2);
    EXPECT_EQ(run({"bench", "--clients", "1", "--generate", "0"}).exit_code, 2);
}

TEST_F(Program, RunWithoutAPromptIsUsage) {
    EXPECT_EQ(run({"run"}).exit_code, 2);
    EXPECT_EQ(run({"run", "-"}).exit_code, 2);
    EXPECT_EQ(shell("printf '\\xc4\\xe3' | \"$P\" run").exit_code, 2);
    EXPECT_EQ(run({"run", "a", "b", "c"}).exit_code, 2);
}

}  // namespace
}  // namespace onebit
