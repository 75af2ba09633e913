// If this fails, the engine is given another route than the user, the stored table or the ubatch asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/route_table.h"
#include "server/supervisor/model_target.h"

namespace onebit {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using Texts = std::vector<std::string>;
namespace fs = std::filesystem;

class ModelRoute : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "model-route-XXXXXX";
        folder_ = mkdtemp(name.data());
        ::setenv("ONEBIT_CACHE", (folder_ / "cache").c_str(), 1);
        std::ofstream(folder_ / "a.gguf") << "GGUF";
        target_.id = "a";
        target_.entry.files = {folder_ / "a.gguf"};
        target_.device_identities = {{"Vulkan0", "Vulkan0, H200, 580"}, {"CUDA0", "CUDA0, H200, 580"}};
    }
    void TearDown() override { fs::remove_all(folder_); }
    void name_both(std::optional<uint32_t> tokens, Texts arguments = {}) {
        target_.settings.devices = {"CUDA0"};
        target_.settings.prefill_device = {"Vulkan0"};
        target_.settings.prefill_min_tokens = tokens;
        target_.settings.arguments = std::move(arguments);
    }
    void store(std::vector<double> token, std::vector<double> ubatch, const std::string& key) {
        RouteTable table;
        table.members = {"Vulkan0", "CUDA0"};
        table.source = "tune";
        table.switch_us = 100;
        table.cells = {{1, 0, std::move(token)}, {512, 0, std::move(ubatch)}};
        auto tables = open_route_tables();
        ASSERT_TRUE(tables.ok()) << tables.error().message();
        ASSERT_TRUE(store_route_table(*tables, key, table).ok());
    }
    fs::path folder_;
    ModelTarget target_;
};

// N 1024 and ubatches of 512: every whole ubatch counts, so that a prompt of 2048 is read whole by the prefill device
TEST_F(ModelRoute, TheThresholdIsAtMostAUbatch) {
    const std::string begin = "--onebit-tandem=prefill=Vulkan0,decode=CUDA0,min=";
    name_both(1024);
    EXPECT_EQ(tandem_argument(target_), begin + "512");
    name_both(511);
    EXPECT_EQ(tandem_argument(target_), begin + "511");
    name_both(1024, {"-ub", "2048"});
    EXPECT_EQ(tandem_argument(target_), begin + "1024");
    name_both(1024, {"--ubatch-size=64"});
    EXPECT_EQ(tandem_argument(target_), begin + "64");
    name_both(1024, {"-ub", "0"});
    EXPECT_EQ(tandem_argument(target_), begin + "1");
    target_.settings.strict = true;
    EXPECT_EQ(tandem_argument(target_), begin + "1,strict=1");
}

TEST_F(ModelRoute, AutoGoesWithTheKeyOfTheStoredTable) {
    for (const std::optional<uint32_t> tokens : {std::optional<uint32_t>(), std::optional<uint32_t>(0)}) {
        name_both(tokens);
        EXPECT_THAT(
            tandem_argument(target_),
            MatchesRegex("--onebit-tandem=prefill=Vulkan0,decode=CUDA0,min=auto,ubatch=512,route=[0-9a-f]{64}"));
    }
    // the same whichever member does which
    const std::string key = *stored_route_key(target_, {"Vulkan0", "CUDA0"});
    EXPECT_EQ(*stored_route_key(target_, {"CUDA0", "Vulkan0"}), key);
    EXPECT_THAT(tandem_argument(target_), HasSubstr(key));
    for (const Texts& other : {Texts{"-ub", "1024"}, Texts{"-ctk", "q8_0"}, Texts{"-ctv", "q8_0"},
                               Texts{"--flash-attn", "off"}, Texts{"-t", "3"}}) {
        name_both({}, other);
        EXPECT_NE(*stored_route_key(target_, {"Vulkan0", "CUDA0"}), key) << other.front();
    }
    name_both({}, {"--jinja"});
    EXPECT_EQ(*stored_route_key(target_, {"Vulkan0", "CUDA0"}), key);
    // a model that cannot be read has no key, and is for llama.cpp to refuse
    target_.entry.files = {folder_ / "gone.gguf"};
    EXPECT_EQ(tandem_argument(target_), "--onebit-tandem=prefill=Vulkan0,decode=CUDA0,min=auto,ubatch=512");
}

TEST_F(ModelRoute, NoTandemWithoutTwoDevices) {
    EXPECT_EQ(tandem_argument(target_), "");
    target_.settings.devices = {"CUDA0"};
    EXPECT_EQ(tandem_argument(target_), "");
    target_.settings.prefill_device = {"CUDA0"};
    EXPECT_EQ(tandem_argument(target_), "");
    target_.settings.devices = {"CUDA0", "CUDA1"};
    target_.settings.prefill_device = {"Vulkan0"};
    EXPECT_EQ(tandem_argument(target_), "");
    EXPECT_FALSE(has_tandem(target_.settings));
}

TEST_F(ModelRoute, OpenDevicesAreThoseOfTheStoredTable) {
    ModelTarget& open = target_;
    open.settings.devices = {"Vulkan0"};
    open.settings.open_devices = {"Vulkan0", "CUDA0"};
    const std::string key = *stored_route_key(open, open.settings.open_devices);

    ModelTarget nothing = open;
    EXPECT_THAT(use_stored_route(&nothing), HasSubstr("1bit tune a"));
    EXPECT_EQ(nothing.settings.devices, Texts{"Vulkan0"});
    EXPECT_TRUE(nothing.settings.prefill_device.empty());

    store({240, 270}, {11200, 9800}, key);
    ModelTarget split = open;
    const std::string reason = use_stored_route(&split);
    EXPECT_EQ(split.settings.devices, Texts{"CUDA0"}) << reason;
    EXPECT_EQ(split.settings.prefill_device, Texts{"Vulkan0"}) << reason;
    EXPECT_THAT(reason, HasSubstr("prompts of " + std::to_string(*split.settings.prefill_min_tokens)));
    EXPECT_THAT(tandem_argument(split), HasSubstr(",min=" + std::to_string(*split.settings.prefill_min_tokens)));

    store({240, 290}, {9000, 9800}, key);
    ModelTarget other = open;
    EXPECT_THAT(use_stored_route(&other), HasSubstr("CUDA0 for everything"));
    EXPECT_EQ(other.settings.devices, Texts{"CUDA0"});
    EXPECT_EQ(tandem_argument(other), "");
}

TEST_F(ModelRoute, WhatWasNamedIsNotReplaced) {
    store({240, 290}, {9000, 9800}, *stored_route_key(target_, {"Vulkan0", "CUDA0"}));
    target_.settings.devices = {"Vulkan0"};
    EXPECT_EQ(use_stored_route(&target_), "");
    EXPECT_EQ(target_.settings.devices, Texts{"Vulkan0"});
    target_.settings.open_devices = {"Vulkan0", "CUDA0"};
    target_.settings.arguments = {"--device", "Vulkan0"};
    EXPECT_EQ(use_stored_route(&target_), "");
    EXPECT_EQ(target_.settings.devices, Texts{"Vulkan0"});
}

TEST(ModelRouteSettings, AModelWithDevicesOfItsOwnLeavesNothingOpen) {
    ServeConfig config;
    config.defaults.devices = {"Vulkan0"};
    config.defaults.open_devices = {"Vulkan0", "CUDA0"};
    EXPECT_EQ(effective_settings(config, {}).open_devices, (Texts{"Vulkan0", "CUDA0"}));
    ModelConfig own;
    own.devices = {"CUDA0"};
    EXPECT_TRUE(effective_settings(config, own).open_devices.empty());
    // a number of the file stays, auto of the model wins over the number of the defaults
    config.defaults.prefill_min_tokens = 64;
    EXPECT_EQ(effective_settings(config, own).prefill_min_tokens, 64u);
    own.prefill_min_tokens = 0;
    EXPECT_EQ(effective_settings(config, own).prefill_min_tokens, 0u);
}

}  // namespace
}  // namespace onebit
