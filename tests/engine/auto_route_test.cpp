// If this fails, `--prefill-min-tokens auto` does not use what was measured, measures while it should not, or changes
// answers. Real engine processes, with a tandem of CPUs.
#include "engine/auto_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/route_choice.h"
#include "engine/route_table.h"
#include "server/supervisor/engine_process.h"
#include "tests/engine/real_engine.h"

namespace onebit {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kKey(64, 'a');

TEST(AutoRoute, IsTakenOutOfTheSettings) {
    std::string settings = "owner=CPU,prefill=A,decode=B,min=auto,ubatch=64,route=" + kKey + ",strict=1";
    const auto route = take_auto_route(&settings);
    ASSERT_TRUE(route.ok()) << route.error().message();
    EXPECT_TRUE(route->wanted);
    EXPECT_EQ(route->ubatch, 64u);
    EXPECT_EQ(route->key, kKey);
    EXPECT_EQ(settings, "owner=CPU,prefill=A,decode=B,min=1073741824,strict=1");

    for (const std::string plain : {"owner=CPU,min=16", "owner=CPU", "", "owner=CPU,min=autos"}) {
        std::string same = plain;
        const auto none = take_auto_route(&same);
        ASSERT_TRUE(none.ok());
        EXPECT_FALSE(none->wanted);
        EXPECT_EQ(same, plain);
    }
}

TEST(AutoRoute, WrongValuesAreNamed) {
    for (const std::string wrong :
         {"ubatch=0", "ubatch=", "ubatch=-1", "ubatch=12x", "ubatch=99999999999", "route=", "route=abc",
          "route=../../../../../../../../../../../../../../../../../../../../etc/p"}) {
        std::string settings = "owner=CPU," + wrong;
        const auto route = take_auto_route(&settings);
        ASSERT_FALSE(route.ok()) << wrong;
        EXPECT_EQ(route.error().code, ErrorCode::usage);
        EXPECT_THAT(route.error().message(), HasSubstr(wrong));
    }
}

class AutoRouteEngine : public RealEngine {
protected:
    void SetUp() override {
        RealEngine::SetUp();
        ::setenv("ONEBIT_CACHE", (folder.path() / "cache").c_str(), 1);
    }
    std::unique_ptr<EngineProcess> start_ready(const std::string& tandem) const {
        EngineOptions options;
        options.program = program;
        options.arguments = {"-m", model.string(), "-t", "1", "-np", "1", "-c", "1024", "-ub", "64"};
        if (tandem.empty())
            options.arguments.insert(options.arguments.end(), {"--device", "none"});
        else
            options.arguments.insert(options.arguments.begin(), tandem);
        options.runtime_folder = folder.path();
        options.label = "builtin";
        auto engine = EngineProcess::start(std::move(options));
        if (!engine.ok()) {
            ADD_FAILURE() << engine.error().message();
            return nullptr;
        }
        if (auto ready = (*engine)->wait_ready(kGenerous); !ready.ok()) ADD_FAILURE() << ready.error().message();
        return std::move(*engine);
    }
    static std::string argument() {
        return "--onebit-tandem=owner=CPU,prefill=guest:CPU,decode=CPU,min=auto,ubatch=64,route=" + kKey;
    }
    static std::string content(EngineProcess& engine) {
        std::string prompt = "Once upon a time";
        for (int i = 0; i < 60; ++i) prompt += ", and then there came a bear";
        const json body = {{"prompt", prompt}, {"n_predict", 8}, {"temperature", 0}, {"cache_prompt", false}};
        engine.request_begun();
        const UniqueFd fd = send_request(engine.socket(), post_request("/completion", body.dump()));
        const std::string answer = fd ? read_all(fd) : "";
        engine.request_ended();
        EXPECT_THAT(answer, HasSubstr("200 OK"));
        const size_t begin = answer.find("\r\n\r\n");
        const json parsed = begin == std::string::npos ? json() : json::parse(answer.substr(begin + 4), nullptr, false);
        EXPECT_TRUE(parsed.is_object()) << answer;
        return parsed.is_object() ? parsed["content"].get<std::string>() : "";
    }
    std::string content_alone() const {
        auto engine = start_ready("");
        return engine ? content(*engine) : "";
    }
    static uint64_t tokens_on(const EngineProcess& engine, const std::string& member) {
        for (const auto& one : engine.tandem().members)
            if (one.name == member) return one.prefill_tokens + one.decode_tokens;
        return 0;
    }
};

TEST_F(AutoRouteEngine, AStoredTableGivesTheThreshold) {
    RouteTable table;
    table.members = {"CPU", "guest:CPU"};
    table.ubatch = 64;
    table.source = "tune";
    table.cells = {{1, 0, {200, 100}}, {64, 0, {1000, 4000}}};
    auto tables = open_route_tables();
    ASSERT_TRUE(tables.ok()) << tables.error().message();
    ASSERT_TRUE(store_route_table(*tables, kKey, table).ok());
    auto engine = start_ready(argument());
    ASSERT_NE(engine, nullptr);
    const uint64_t owner = tokens_on(*engine, "CPU");
    EXPECT_EQ(content(*engine), content_alone());
    EXPECT_GT(tokens_on(*engine, "guest:CPU"), 128u) << "whole ubatches of the prompt";
    EXPECT_GT(tokens_on(*engine, "CPU"), owner) << "tokens";
}

TEST_F(AutoRouteEngine, ATableThatSaysOneDeviceIsObeyed) {
    RouteTable table;
    table.members = {"CPU", "guest:CPU"};
    table.ubatch = 64;
    table.source = "tune";
    table.cells = {{1, 0, {200, 100}}, {64, 0, {1000, 1010}}};
    auto tables = open_route_tables();
    ASSERT_TRUE(tables.ok()) << tables.error().message();
    ASSERT_TRUE(store_route_table(*tables, kKey, table).ok());
    auto engine = start_ready(argument());
    ASSERT_NE(engine, nullptr);
    content(*engine);
    EXPECT_EQ(tokens_on(*engine, "guest:CPU"), 0u);
}

// Until the members are measured one device does everything; the measuring waits for idle time, makes way for requests,
// is in no counter, and its table is there for the next start.
TEST_F(AutoRouteEngine, MeasuresInIdleTimeAndKeepsTheTable) {
    const std::string alone = content_alone();
    {
        auto engine = start_ready(argument());
        ASSERT_NE(engine, nullptr);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(content(*engine), alone);
        EXPECT_EQ(tokens_on(*engine, "guest:CPU"), 0u);
        const uint64_t owner = tokens_on(*engine, "CPU");
        auto tables = open_route_tables();
        ASSERT_TRUE(tables.ok()) << tables.error().message();
        ASSERT_TRUE(eventually([&] { return load_route_table(*tables, kKey, {"CPU", "guest:CPU"}).ok(); }));
        EXPECT_EQ(tokens_on(*engine, "guest:CPU"), 0u);
        EXPECT_EQ(tokens_on(*engine, "CPU"), owner);
        EXPECT_EQ(content(*engine), alone);
        EXPECT_EQ(engine->status().restarts, 0u);
    }
    auto tables = open_route_tables();
    const auto table = load_route_table(*tables, kKey, {});
    ASSERT_TRUE(table.ok()) << table.error().message();
    EXPECT_EQ(table->source, "calibration");
    EXPECT_EQ(table->ubatch, 64u);
    EXPECT_TRUE(choose_route(*table, {"CPU", "guest:CPU"}).ok());
}

// A server that is stopped while it measures ends in order.
TEST_F(AutoRouteEngine, StopsAtAnyTime) {
    for (int i = 0; i < 3; ++i) {
        auto engine = start_ready(argument());
        ASSERT_NE(engine, nullptr);
        const uint64_t graphs = engine->status().graphs;
        if (i > 0) {
            eventually([&] { return engine->status().graphs > graphs + 10u * static_cast<unsigned>(i); });
        }
        engine->stop();
        EXPECT_EQ(engine->status().state, EngineState::stopped);
        EXPECT_EQ(engine->status().last_failure, "");
        std::filesystem::remove_all(folder.path() / "cache" / "routes");
    }
}

}  // namespace
}  // namespace onebit
