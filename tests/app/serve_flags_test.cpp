// If this fails, a flag of `1bit serve` does not win over onebit.yaml, or keys are read wrongly.
#include "app/serve_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace onebit {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

class ServeFlagsTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "flags-XXXXXX";
        folder_ = mkdtemp(name.data());
        setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
        unsetenv("ONEBIT_API_KEY");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }
    // Parses as `1bit serve` does.
    ServeFlags parsed(Texts arguments) {
        ServeFlags flags;
        CLI::App app;
        add_serve_flags(&app, &flags);
        std::reverse(arguments.begin(), arguments.end());
        app.parse(std::move(arguments));
        return flags;
    }
    std::filesystem::path folder_;
};

TEST_F(ServeFlagsTest, NothingGivenGivesTheDefaults) {
    Result<ServeConfig> config = load_config(parsed({}));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->port, 8080);
    EXPECT_EQ(config->file, "");
    EXPECT_TRUE(config->check_memory);
    EXPECT_FALSE(config->loose_patterns);
    EXPECT_TRUE(config->api_keys.empty());
}

TEST_F(ServeFlagsTest, PrefillMinTokensIsANumberOrAuto) {
    ServeConfig file;
    file.models["small"].prefill_min_tokens = 64;
    EXPECT_EQ(apply_flags(parsed({"--prefill-min-tokens", "1024"}), file)->defaults.prefill_min_tokens, 1024u);
    const Result<ServeConfig> automatic = apply_flags(parsed({"--prefill-min-tokens", "auto"}), file);
    EXPECT_EQ(automatic->defaults.prefill_min_tokens, 0u);
    EXPECT_FALSE(automatic->models.at("small").prefill_min_tokens) << "a flag wins over the file";
    EXPECT_FALSE(apply_flags(parsed({}), file)->defaults.prefill_min_tokens);
    for (const char* wrong : {"0", "-1", "AUTO", "", "1k"})
        EXPECT_THROW(parsed({"--prefill-min-tokens", wrong}), CLI::ParseError) << wrong;
}

TEST_F(ServeFlagsTest, StrictHoldsForEveryModel) {
    ServeConfig file;
    file.models["small"].strict = false;
    EXPECT_FALSE(apply_flags(parsed({}), file)->defaults.strict);
    const Result<ServeConfig> strict = apply_flags(parsed({"--strict"}), file);
    EXPECT_EQ(strict->defaults.strict, true);
    EXPECT_FALSE(strict->models.at("small").strict) << "a flag wins over the file";
}

TEST_F(ServeFlagsTest, MembersAreExcludedWithAReason) {
    using Excluded = std::vector<std::pair<std::string, std::string>>;
    EXPECT_TRUE(apply_flags(parsed({}), {})->defaults.excluded.empty());
    EXPECT_EQ(apply_flags(parsed({"--exclude-member", "cuda0", "--reason", "too hot"}), {})->defaults.excluded,
              (Excluded{{"cuda0", "too hot"}}));
    EXPECT_EQ(apply_flags(parsed({"--exclude-member", "a,b", "--exclude-member", "c"}), {})->defaults.excluded,
              (Excluded{{"a", "--exclude-member"}, {"b", "--exclude-member"}, {"c", "--exclude-member"}}));
    const Result<ServeConfig> alone = apply_flags(parsed({"--reason", "none"}), {});
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().code, ErrorCode::usage);
}

TEST_F(ServeFlagsTest, EveryFlagArrives) {
    Result<ServeConfig> config = load_config(parsed({"m.gguf",
                                                     "--host",
                                                     "0.0.0.0",
                                                     "--port",
                                                     "0",
                                                     "--api-key",
                                                     "k1",
                                                     "--api-key",
                                                     "k2",
                                                     "--cors-origin",
                                                     "*",
                                                     "--device",
                                                     "Vulkan0,cpu",
                                                     "-c",
                                                     "512",
                                                     "--parallel",
                                                     "3",
                                                     "--keep-alive",
                                                     "forever",
                                                     "--max-models",
                                                     "2",
                                                     "--preload",
                                                     "a",
                                                     "--preload",
                                                     "b",
                                                     "--offline",
                                                     "--no-memory-check",
                                                     "--loose-patterns",
                                                     "--max-request-size",
                                                     "1M",
                                                     "--drain-timeout",
                                                     "5s"}));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->model, "m.gguf");
    EXPECT_EQ(config->host, "0.0.0.0");
    EXPECT_EQ(config->port, 0);
    EXPECT_EQ(config->api_keys, (Texts{"k1", "k2"}));
    EXPECT_EQ(config->cors_origins, (Texts{"*"}));
    EXPECT_EQ(config->defaults.devices, (Texts{"Vulkan0", "cpu"}));
    EXPECT_EQ(config->defaults.context, 512u);
    EXPECT_EQ(config->defaults.parallel, 3u);
    EXPECT_LT(config->keep_alive, seconds(0));
    EXPECT_EQ(config->max_models, 2u);
    EXPECT_EQ(config->preload, (Texts{"a", "b"}));
    EXPECT_TRUE(config->offline);
    EXPECT_FALSE(config->check_memory);
    EXPECT_TRUE(config->loose_patterns);
    EXPECT_EQ(config->max_request_bytes, 1u << 20);
    EXPECT_EQ(config->drain_timeout, seconds(5));
}

TEST_F(ServeFlagsTest, FlagsWinOverTheFileAndItsModels) {
    std::string file =
        write("my.yaml",
              "port: 81\nhost: 1.2.3.4\napi_keys: [file]\nkeep_alive: 1m\n"
              "defaults: {context: 1000, devices: [Vulkan0], arguments: [-a]}\n"
              "models: {x: {context: 2000, parallel: 2, devices: [Vulkan1], keep_alive: 9s, pin: true}}\n");
    ServeFlags flags = parsed({"--config", file, "--port", "82", "-c", "300", "--device", "cpu", "--keep-alive", "2m"});
    flags.engine_arguments = {"-b"};
    Result<ServeConfig> config = load_config(flags);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->file, file);
    EXPECT_EQ(config->port, 82);
    EXPECT_EQ(config->host, "1.2.3.4");
    EXPECT_EQ(config->api_keys, (Texts{"file"}));
    EXPECT_EQ(config->keep_alive, seconds(120));
    EXPECT_EQ(config->defaults.context, 300u);
    EXPECT_EQ(config->defaults.devices, (Texts{"cpu"}));
    EXPECT_EQ(config->defaults.arguments, (Texts{"-a", "-b"}));
    const ModelConfig& model = config->models.at("x");
    EXPECT_FALSE(model.context.has_value());
    EXPECT_FALSE(model.keep_alive.has_value());
    EXPECT_TRUE(model.devices.empty());
    EXPECT_TRUE(model.pin);
    EXPECT_EQ(model.parallel, 2u);
}

// UX06: a reload reads the file again under the flags of the start
TEST_F(ServeFlagsTest, AReloadKeepsTheFlags) {
    std::string file = write("my.yaml", "port: 81\nmax_models: 1\n");
    ServeFlags flags = parsed({"--config", file, "--port", "82"});
    EXPECT_EQ(load_config(flags)->max_models, 1u);
    write("my.yaml", "port: 83\nmax_models: 2\n");
    EXPECT_EQ(load_config(flags)->max_models, 2u);
    EXPECT_EQ(load_config(flags)->port, 82);
    write("my.yaml", "max_models: 0\n");
    EXPECT_FALSE(load_config(flags).ok());
}

TEST_F(ServeFlagsTest, TheDefaultFileIsReadWhenThere) {
    write("1bit/onebit.yaml", "port: 99\n");
    EXPECT_EQ(load_config(parsed({}))->port, 99);
    Result<ServeConfig> missing = load_config(parsed({"--config", folder_ / "none.yaml"}));
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message(), HasSubstr("none.yaml"));
}

TEST_F(ServeFlagsTest, KeysFromFlagFileAndEnvironment) {
    std::string file = write("keys", "# mine\n  first \r\n\nsecond\n");
    EXPECT_EQ(*given_api_keys({"flag"}, file), (Texts{"flag", "first", "second"}));
    setenv("ONEBIT_API_KEY", "variable", 1);
    EXPECT_EQ(*given_api_keys({}, ""), (Texts{"variable"}));
    EXPECT_EQ(*given_api_keys({"flag"}, ""), (Texts{"flag"}));
    setenv("ONEBIT_API_KEY", "", 1);
    EXPECT_TRUE(given_api_keys({}, "")->empty());
    EXPECT_EQ(given_api_keys({""}, "").error().code, ErrorCode::usage);
    EXPECT_EQ(given_api_keys({" spaced"}, "").error().code, ErrorCode::usage);
    EXPECT_THAT(given_api_keys({}, write("empty", "\n# none\n")).error().message(), HasSubstr("at least one key"));
    EXPECT_FALSE(given_api_keys({}, folder_ / "missing").ok());
    EXPECT_FALSE(given_api_keys({}, folder_).ok());
    EXPECT_FALSE(given_api_keys({}, write("binary", std::string("a\0b\n", 4))).ok());
    EXPECT_FALSE(given_api_keys({}, write("huge", std::string(1 << 20, 'k'))).ok());
}

TEST_F(ServeFlagsTest, WrongValuesAreRefused) {
    for (const Texts& wrong :
         {Texts{"--port", "65536"}, Texts{"--port", "x"}, Texts{"--host", ""}, Texts{"--parallel", "0"},
          Texts{"--keep-alive", "soon"}, Texts{"--max-request-size", "0"}, Texts{"--drain-timeout", "-1"},
          Texts{"--max-models", "65"}})
        EXPECT_THROW(parsed(wrong), CLI::ParseError) << wrong[0] << " " << wrong[1];
    EXPECT_FALSE(apply_flags(parsed({"--device", ","}), {}).ok());
}

TEST(SplitList, Items) {
    EXPECT_EQ(split_list({}), Texts{});
    EXPECT_EQ(split_list({"", ","}), Texts{});
    EXPECT_EQ(split_list({"a", "b,c,", ",d"}), (Texts{"a", "b", "c", "d"}));
}

}  // namespace
}  // namespace onebit
