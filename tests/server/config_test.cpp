// If this fails, `1bit serve` misreads onebit.yaml, or an error in it does not say what to mend.
#include "server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace onebit {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string message_of(std::string_view yaml) {
    Result<ServeConfig> config = parse_config(yaml, "onebit.yaml");
    if (config) return "accepted";
    EXPECT_EQ(config.error().code, ErrorCode::usage);
    return config.error().message();
}

class Folder {
public:
    Folder() {
        std::string name = testing::TempDir() + "config-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::filesystem::path write(const std::string& name, std::string_view text) const {
        std::ofstream(path_ / name, std::ios::binary) << text;
        return path_ / name;
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

TEST(Config, NothingGivesTheDefaults) {
    for (const char* yaml : {"", "\n", "# only a comment\n", "---\n", "\xef\xbb\xbf", "~\n", "{}"}) {
        Result<ServeConfig> config = parse_config(yaml, "onebit.yaml");
        ASSERT_TRUE(config) << yaml << config.error().message();
        EXPECT_EQ(config->host, "127.0.0.1");
        EXPECT_EQ(config->port, 8080);
        EXPECT_EQ(config->keep_alive, seconds(300));
        EXPECT_TRUE(config->api_keys.empty());
        EXPECT_TRUE(config->cors_origins.empty());
        EXPECT_TRUE(config->check_memory);
        EXPECT_FALSE(config->loose_patterns);
    }
}

TEST(Config, EveryKeyArrives) {
    Result<ServeConfig> config = parse_config(R"(
host: "::1"
port: 0
api_keys: [a, b]
cors_origins: https://chat.example
max_request_size: 1M
read_timeout: 5
start_timeout: 2m
hang_timeout: 45s
drain_timeout: 0s
model: builtin
default_model: small
preload: [small]
keep_alive: forever
max_models: 3
offline: true
check_memory: off
loose_patterns: on
defaults: {devices: [cpu], prefill_min_tokens: auto, context: 0, parallel: 256, arguments: [--verbose]}
models:
  small:
    source: builtin
    aliases: [gpt, other]
    devices: Vulkan0
    prefill_device: cpu
    prefill_min_tokens: 64
    strict: true
    context: 512
    parallel: 1
    keep_alive: 0
    pin: true
    arguments: ["--temp", "0"]
  bare:
)",
                                              "onebit.yaml");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->host, "::1");
    EXPECT_EQ(config->port, 0);
    EXPECT_EQ(config->api_keys, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(config->cors_origins, (std::vector<std::string>{"https://chat.example"}));
    EXPECT_EQ(config->max_request_bytes, 1u << 20);
    EXPECT_EQ(config->read_timeout, seconds(5));
    EXPECT_EQ(config->start_timeout, seconds(120));
    EXPECT_EQ(config->hang_timeout, seconds(45));
    EXPECT_EQ(config->drain_timeout, seconds(0));
    EXPECT_EQ(config->model, "builtin");
    EXPECT_EQ(config->default_model, "small");
    EXPECT_EQ(config->preload, (std::vector<std::string>{"small"}));
    EXPECT_LT(config->keep_alive, seconds(0));
    EXPECT_EQ(config->max_models, 3u);
    EXPECT_TRUE(config->offline);
    EXPECT_FALSE(config->check_memory);
    EXPECT_TRUE(config->loose_patterns);
    EXPECT_EQ(config->defaults.devices, (std::vector<std::string>{"cpu"}));
    EXPECT_EQ(config->defaults.context, 0u);
    EXPECT_EQ(config->defaults.parallel, 256u);
    EXPECT_EQ(config->defaults.arguments, (std::vector<std::string>{"--verbose"}));
    ASSERT_EQ(config->models.size(), 2u);
    const ModelConfig& small = config->models.at("small");
    EXPECT_EQ(small.source, "builtin");
    EXPECT_EQ(small.aliases, (std::vector<std::string>{"gpt", "other"}));
    EXPECT_EQ(small.devices, (std::vector<std::string>{"Vulkan0"}));
    EXPECT_EQ(small.prefill_device, (std::vector<std::string>{"cpu"}));
    EXPECT_EQ(small.prefill_min_tokens, 64u);
    EXPECT_EQ(small.strict, true);
    EXPECT_FALSE(config->defaults.strict.has_value());
    EXPECT_EQ(config->defaults.prefill_min_tokens, 0u) << "auto";
    EXPECT_FALSE(config->models.at("bare").prefill_min_tokens.has_value());
    EXPECT_EQ(small.context, 512u);
    EXPECT_EQ(small.parallel, 1u);
    EXPECT_EQ(small.keep_alive, seconds(0));
    EXPECT_TRUE(small.pin);
    EXPECT_EQ(small.arguments, (std::vector<std::string>{"--temp", "0"}));
    EXPECT_EQ(config->models.at("bare").source, "bare");
    EXPECT_FALSE(config->models.at("bare").context.has_value());
}

TEST(Config, ErrorsNameFileLineKeyExpectedAndFound) {
    EXPECT_EQ(message_of("host: 127.0.0.1\nport: 65536\n"),
              "onebit.yaml:2: key 'port': expected a whole number from 0 to 65535, found '65536'");
    EXPECT_THAT(message_of("port: -1"), HasSubstr("onebit.yaml:1: key 'port'"));
    EXPECT_THAT(message_of("port: 80.5"), HasSubstr("found '80.5'"));
    EXPECT_THAT(message_of("port: 99999999999999999999999"), HasSubstr("found '99999999999999999999999'"));
    EXPECT_THAT(message_of("port: eighty"), HasSubstr("found 'eighty'"));
    EXPECT_THAT(message_of("port: [80]"), HasSubstr("found a list"));
    EXPECT_THAT(message_of("host:\nport: 1\n"), AllOf(HasSubstr("onebit.yaml:1: key 'host'"), HasSubstr("nothing")));
    EXPECT_THAT(message_of("host: {a: b}"), HasSubstr("found a mapping"));
    EXPECT_THAT(message_of("offline: maybe"), HasSubstr("expected true or false, found 'maybe'"));
    EXPECT_THAT(message_of("keep_alive: 5 minutes"), HasSubstr("found '5 minutes'"));
    EXPECT_THAT(message_of("keep_alive: [5m]"), HasSubstr("found a list"));
    EXPECT_THAT(message_of("max_request_size: 0"), HasSubstr("at least one byte"));
    EXPECT_THAT(message_of("max_models: 0"), HasSubstr("from 1 to 64"));
    EXPECT_THAT(message_of("preload: [a, [b]]"), HasSubstr("key 'preload[1]'"));
    EXPECT_THAT(message_of("defaults: {parallel: 257}"), HasSubstr("key 'defaults.parallel'"));
    EXPECT_THAT(message_of("models:\n  a:\n    context: -5\n"), HasSubstr("onebit.yaml:3: key 'models.a.context'"));
    EXPECT_THAT(message_of("models: [a]"), HasSubstr("expected a mapping"));
    EXPECT_THAT(message_of("just a text"), HasSubstr("expected a mapping"));
    EXPECT_THAT(message_of("- a\n- b\n"), HasSubstr("found a list"));
    EXPECT_THAT(message_of("? [a]\n: b\n"), HasSubstr("a name as key"));
}

TEST(Config, UnknownKeysAreRefusedWithTheNearest) {
    EXPECT_THAT(message_of("a: 1\n"), AllOf(HasSubstr("key 'a'"), HasSubstr("unknown key")));
    EXPECT_THAT(message_of("\nprot: 80\n"), AllOf(HasSubstr("onebit.yaml:2"), HasSubstr("did you mean 'port'?")));
    EXPECT_THAT(message_of("keep-alive: 5m\n"), HasSubstr("did you mean 'keep_alive'?"));
    EXPECT_THAT(message_of("models: {x: {contxt: 5}}"),
                AllOf(HasSubstr("key 'models.x.contxt'"), HasSubstr("did you mean 'context'?")));
    EXPECT_THAT(message_of("defaults: {source: x}"), HasSubstr("unknown key"));
    EXPECT_THAT(message_of("<<: {port: 1}"), HasSubstr("unknown key"));
}

TEST(Config, ContextsThatLlamaCppCannotMakeAreRefused) {
    for (const char* text : {"0", "256", "257", "8192", "1073741824"}) EXPECT_TRUE(parse_context(text).ok()) << text;
    for (const char* text : {"", "1", "5", "255", "-1", "1073741825", "256k", " 256", "4294967552"})
        EXPECT_EQ(parse_context(text).error().code, ErrorCode::usage) << text;
    EXPECT_THAT(message_of("defaults: {context: 5}"),
                AllOf(HasSubstr("key 'defaults.context'"), HasSubstr("from 256"), HasSubstr("'5'")));
    EXPECT_THAT(message_of("defaults: {context: [256]}"), HasSubstr("a list"));
}

TEST(Config, KeysThatNoHeaderCanCarryAreRefused) {
    for (const char* key : {"k", "two words", "\xc3\xa4"}) EXPECT_TRUE(is_usable_api_key(key)) << key;
    for (const char* key : {"", " k", "k ", "\tk", "a\nb", "a\x01", "\xff"})
        EXPECT_FALSE(is_usable_api_key(key)) << key;
    EXPECT_THAT(message_of("api_keys: [good, ' bad']"), AllOf(HasSubstr("key 'api_keys'"), Not(HasSubstr("bad"))));
}

TEST(Config, OriginsAreWhatBrowsersSend) {
    const std::pair<const char*, const char*> right[] = {
        {"*", "*"},
        {"null", "null"},
        {"https://chat.example", "https://chat.example"},
        {"HTTPS://Chat.Example", "https://chat.example"},
        {"http://a:80", "http://a"},
        {"https://a:443", "https://a"},
        {"http://a:443", "http://a:443"},
        {"http://[::1]:3000", "http://[::1]:3000"},
        {"http://127.0.0.1:65535", "http://127.0.0.1:65535"},
        {"chrome-extension://abcdef", "chrome-extension://abcdef"},
    };
    for (const auto& [text, origin] : right) {
        const auto parsed = parse_origin(text);
        ASSERT_TRUE(parsed.ok()) << text << parsed.error().message();
        EXPECT_EQ(*parsed, origin);
    }
    for (const char* text : {"",
                             "foo",
                             "a.example",
                             "a.example:80",
                             "http://",
                             "http://a/",
                             "http://a/b",
                             "http://u@a",
                             "http://a b",
                             "http://a:",
                             "http://a:0",
                             "http://a:65536",
                             "http://a:80x",
                             "http://[::1",
                             "http://[]",
                             "http://[x]",
                             "http://[::1]3000",
                             "://a",
                             "1x://a",
                             "**",
                             "http://*",
                             "http://a?"})
        EXPECT_EQ(parse_origin(text).error().code, ErrorCode::usage) << text;
    EXPECT_THAT(message_of("port: 1\ncors_origins: [https://a, foo]"),
                AllOf(HasSubstr("onebit.yaml:2: key 'cors_origins'"), HasSubstr("'foo'"), HasSubstr("https://HOST")));
    EXPECT_EQ(parse_config("cors_origins: 'HTTP://A:80'", "x")->cors_origins, (std::vector<std::string>{"http://a"}));
}

TEST(Config, KeysAndNamesAreUsedOnce) {
    EXPECT_THAT(message_of("port: 1\nport: 2\n"),
                AllOf(HasSubstr("onebit.yaml:2: key 'port'"), HasSubstr("second time")));
    EXPECT_THAT(message_of("models: {a: {}, a: {}}"), HasSubstr("key 'models.a'"));
    EXPECT_THAT(message_of("models: {a: {aliases: [b]}, b: {}}"), HasSubstr("'b', which is taken"));
    EXPECT_THAT(message_of("models: {a: {aliases: [c]}, b: {aliases: c}}"), HasSubstr("'c', which is taken"));
}

TEST(Config, BrokenYamlSaysWhere) {
    EXPECT_THAT(message_of("host: 'open\nport: 1\n"), HasSubstr("onebit.yaml:"));
    EXPECT_THAT(message_of("models: {a: {}\n"), HasSubstr("expected YAML"));
    EXPECT_THAT(message_of("host: *nobody\n"), HasSubstr("onebit.yaml:1"));
    EXPECT_THAT(message_of("port: 1\n---\nport: 2\n"), HasSubstr("one document"));
    EXPECT_THAT(message_of("models:\n\ta:\n\t\tsource: x\n"), HasSubstr("spaces, not with tabs"));
    EXPECT_NE(message_of("a: b: c: d"), "accepted");
    EXPECT_THAT(message_of(","), HasSubstr("one document"));
}

TEST(Config, TabsInsideAValueAreFine) {
    Result<ServeConfig> config = parse_config("host:\t127.0.0.2\nport: 1\t# one\r\n", "onebit.yaml");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->host, "127.0.0.2");
}

TEST(Config, WhatIsNoTextIsRefused) {
    EXPECT_THAT(message_of(std::string_view("port: 1\n\0\1\2", 11)), HasSubstr("onebit.yaml:2: expected text"));
    EXPECT_THAT(message_of("host: \xff\xfe"), HasSubstr("text in UTF-8"));
    EXPECT_THAT(message_of("host: \xe2\x82"), HasSubstr("text in UTF-8"));
    EXPECT_THAT(message_of(std::string_view("\xff\xfeh\0o\0", 6)), HasSubstr("text in UTF-8"));
    EXPECT_THAT(message_of(std::string(10 << 20, 'a')), HasSubstr("at most 256 KiB"));
    EXPECT_THAT(message_of("GGUF\x03\x01"), HasSubstr("text in UTF-8"));
}

std::string repeated(std::string_view part, size_t bytes) {
    std::string text;
    while (text.size() + part.size() <= bytes) text += part;
    return text;
}

TEST(Config, HostileYamlIsRefusedWithoutHarm) {
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c <= 'z'; ++c) {
        std::string to(1, c), from(1, char(c - 1));
        bomb += to + ": &" + to + " [";
        for (int i = 0; i < 9; ++i) bomb += (i ? ",*" : "*") + from;
        bomb += "]\n";
    }
    EXPECT_THAT(message_of(bomb), HasSubstr("unknown key"));
    EXPECT_THAT(message_of("preload: &a [*a, *a]\n"), HasSubstr("preload[0]"));
    EXPECT_THAT(message_of("models: &m {a: *m}\n"), HasSubstr("onebit.yaml"));
    EXPECT_THAT(message_of("models:\n  x: &b {source: y}\n  z: *b\n"), HasSubstr("accepted"));
    const size_t most = 250 << 10;
    for (const char* part :
         {"[", "{",   "- ",   "? ",   "a: ", "[a,",   "{a: ", "!", "&a ", "*a ",          "'",   "\"", "|",
          ">", "-\n", "? \n", "%a\n", "#",   "---\n", ",",    "]", "}",   "\xef\xbb\xbf", "a\n", "!<", "a: &a\n"}) {
        std::string text = repeated(part, most);
        EXPECT_NE(message_of(text).substr(0, 7), "crashed") << part;
        EXPECT_NE(message_of("preload: [" + text.substr(0, most / 2) + "]"), "") << part;
    }
    EXPECT_THAT(message_of("preload: [&a x" + repeated(", *a", most) + "]"), HasSubstr("accepted"));
    EXPECT_THAT(message_of(repeated("[", 100000)), HasSubstr("onebit.yaml"));
}

TEST(Config, NoBytesCrashIt) {
    std::mt19937 random(1);
    const std::string good = "models:\n  a: &x {source: b, aliases: [c, 'd'], pin: true}\nport: 1\nkeep_alive: 5m\n";
    const std::string alphabet = "[]{}:,-?&*!|>'\"%@`#\n\t ax1~";
    for (int round = 0; round < 5000; ++round) {
        std::string text = good;
        for (int change = 0; change < 4; ++change) {
            size_t place = random() % text.size();
            char letter = random() % 8 == 0 ? char(random()) : alphabet[random() % alphabet.size()];
            if (random() % 2)
                text[place] = letter;
            else
                text.insert(place, 1, letter);
        }
        Result<ServeConfig> config = parse_config(text, "onebit.yaml");
        EXPECT_TRUE(config.ok() || !config.error().message().empty());
    }
}

TEST(Config, FilesAreReadAndErrorsNameThem) {
    Folder folder;
    Result<ServeConfig> config = read_config(folder.write("onebit.yaml", "port: 81\n"));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->port, 81);
    EXPECT_EQ(config->file, folder.path() / "onebit.yaml");

    Result<ServeConfig> missing = read_config(folder.path() / "none.yaml");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_THAT(missing.error().message(), HasSubstr("none.yaml"));

    Result<ServeConfig> directory = read_config(folder.path());
    ASSERT_FALSE(directory);
    EXPECT_THAT(directory.error().message(), HasSubstr("found a folder"));

    Result<ServeConfig> huge = read_config(folder.write("huge.yaml", std::string(10 << 20, '\n')));
    ASSERT_FALSE(huge);
    EXPECT_THAT(huge.error().message(), AllOf(HasSubstr("huge.yaml"), HasSubstr("at most 256 KiB")));

    Result<ServeConfig> endless = read_config("/dev/zero");
    ASSERT_FALSE(endless);
    EXPECT_THAT(endless.error().message(), HasSubstr("/dev/zero"));
}

// UX06: what changed on the disk is what the next read gives
TEST(Config, ASecondReadSeesTheChange) {
    Folder folder;
    std::filesystem::path file = folder.write("onebit.yaml", "keep_alive: 1m\n");
    EXPECT_EQ(read_config(file)->keep_alive, seconds(60));
    folder.write("onebit.yaml", "keep_alive: 2m\n");
    EXPECT_EQ(read_config(file)->keep_alive, seconds(120));
    folder.write("onebit.yaml", "keep_alive: soon\n");
    EXPECT_FALSE(read_config(file).ok());
}

TEST(Config, RelativeSourcesStartAtTheFile) {
    Folder folder;
    Result<ServeConfig> config = read_config(folder.write("onebit.yaml",
                                                          "model: ~/m.gguf\n"
                                                          "models: {a: {source: ./x/a.gguf}, "
                                                          "b: {source: ../b.gguf}, c: {source: o/r}}\n"));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->models["a"].source, folder.path() / "x/a.gguf");
    EXPECT_EQ(config->models["b"].source, folder.path().parent_path() / "b.gguf");
    EXPECT_EQ(config->models["c"].source, "o/r");
    EXPECT_EQ(config->model, std::string(std::getenv("HOME") ? std::getenv("HOME") : "") + "/m.gguf");
}

TEST(Config, TheExampleOfTheDocsIsValid) {
    Result<ServeConfig> config = read_config(std::filesystem::path(ONEBIT_SOURCE_DIR) / "docs/onebit.example.yaml");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->models.size(), 2u);
    EXPECT_EQ(config->models["large"].keep_alive, seconds(5400));
}

// The example states the defaults of all keys outside `defaults` and `models`.
TEST(Config, TheExampleStatesTheDefaults) {
    Result<ServeConfig> example = read_config(std::filesystem::path(ONEBIT_SOURCE_DIR) / "docs/onebit.example.yaml");
    ASSERT_TRUE(example) << example.error().message();
    ServeConfig plain;
    EXPECT_EQ(example->host, plain.host);
    EXPECT_EQ(example->port, plain.port);
    EXPECT_EQ(example->max_request_bytes, plain.max_request_bytes);
    EXPECT_EQ(example->read_timeout, plain.read_timeout);
    EXPECT_EQ(example->start_timeout, plain.start_timeout);
    EXPECT_EQ(example->hang_timeout, plain.hang_timeout);
    EXPECT_EQ(example->drain_timeout, plain.drain_timeout);
    EXPECT_EQ(example->default_model, plain.default_model);
    EXPECT_EQ(example->keep_alive, plain.keep_alive);
    EXPECT_EQ(example->max_models, plain.max_models);
    EXPECT_EQ(example->offline, plain.offline);
    EXPECT_EQ(example->check_memory, plain.check_memory);
    EXPECT_EQ(example->loose_patterns, plain.loose_patterns);
}

TEST(Config, TheExampleHasEveryKey) {
    std::ifstream file(std::filesystem::path(ONEBIT_SOURCE_DIR) / "docs/onebit.example.yaml");
    const std::string example = "\n" + std::string(std::istreambuf_iterator<char>(file), {});
    const std::string known = parse_config("no_such_key: 1", "x").error().expected;
    ASSERT_TRUE(known.starts_with("one of ")) << known;
    std::istringstream keys(known.substr(7));
    size_t count = 0;
    for (std::string key; std::getline(keys >> std::ws, key, ','); count++) {
        if (key == "model") continue;  // would make it a server of one model
        EXPECT_NE(example.find("\n" + key + ":"), std::string::npos) << key;
    }
    EXPECT_GT(count, 15u);
}

TEST(KeepAlive, Forms) {
    EXPECT_EQ(*parse_keep_alive("0"), seconds(0));
    EXPECT_EQ(*parse_keep_alive("90"), seconds(90));
    EXPECT_EQ(*parse_keep_alive("90s"), seconds(90));
    EXPECT_EQ(*parse_keep_alive("5m"), seconds(300));
    EXPECT_EQ(*parse_keep_alive("2h"), seconds(7200));
    EXPECT_EQ(*parse_keep_alive("1h30m"), seconds(5400));
    EXPECT_EQ(*parse_keep_alive("1d"), seconds(86400));
    EXPECT_LT(*parse_keep_alive("-1"), seconds(0));
    EXPECT_LT(*parse_keep_alive("-5m"), seconds(0));
    EXPECT_LT(*parse_keep_alive("forever"), seconds(0));
    EXPECT_EQ(*parse_keep_alive("3650d"), seconds(3650ll * 86400));
    for (const char* wrong : {"", "-", "m", "5x", "5 m", " 5", "5m ", "1.5h", "+5", "0x5", "1h30", "--1", "never",
                              "36500d", "18446744073709551616", "9223372036854775807h", "5m\n", "٥"})
        EXPECT_FALSE(parse_keep_alive(wrong).ok()) << wrong;
    EXPECT_FALSE(parse_duration("-1").ok());
    EXPECT_FALSE(parse_duration("forever").ok());
}

TEST(Size, Forms) {
    EXPECT_EQ(*parse_size("0"), 0u);
    EXPECT_EQ(*parse_size("1"), 1u);
    EXPECT_EQ(*parse_size("64K"), 65536u);
    EXPECT_EQ(*parse_size("64KiB"), 65536u);
    EXPECT_EQ(*parse_size("256m"), 256u << 20);
    EXPECT_EQ(*parse_size("2GB"), 2ull << 30);
    EXPECT_EQ(*parse_size("1T"), 1ull << 40);
    EXPECT_EQ(*parse_size("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(*parse_size("16777215T"), 16777215ull << 40);
    for (const char* wrong : {"", "K", "-1", "1.5G", "1X", "1KK", "1 K", "16777216T", "18446744073709551616", "1iB"})
        EXPECT_FALSE(parse_size(wrong).ok()) << wrong;
}

TEST(DefaultConfigFile, FollowsXdg) {
    // one process per case under CTest, so the environment is this test's own
    setenv("XDG_CONFIG_HOME", "/c", 1);
    EXPECT_EQ(default_config_file(), "/c/1bit/onebit.yaml");
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/h", 1);
    EXPECT_EQ(default_config_file(), "/h/.config/1bit/onebit.yaml");
    unsetenv("HOME");
    EXPECT_EQ(default_config_file(), "");
}

}  // namespace
}  // namespace onebit
