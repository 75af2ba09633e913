// A supervisor over HTTP with engines that are local HTTP servers: the base of its test suites.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/direct_stream.h"
#include "server/supervisor/supervisor.h"
#include "tests/server/supervisor_testing.h"

namespace onebit::testing {

using namespace std::chrono_literals;
using nlohmann::json;

class SupervisorTest : public ::testing::Test {
protected:
    // The engines outlive their models, so that a test can look at them and let them go.
    void start(std::function<void(ServeConfig&)> change = {}, std::function<void(SupervisorParts&)> change_parts = {}) {
        ServerContext context;
        context.config.port = 0;
        context.config.keep_alive = KeepAlive{-1};
        context.config.default_model.clear();  // nothing is loaded before a test asks for it
        if (change) change(context.config);
        context.reload = [this]() -> Result<ServeConfig> {
            if (bad_reload) return Error{ErrorCode::usage, "onebit.yaml", "a mapping", "a number", ""};
            return reloaded;
        };
        reloaded = context.config;
        SupervisorParts parts;
        parts.resolve = [](const std::string& name) -> Result<ModelTarget> {
            ModelTarget target;
            target.id = name.empty() ? "m" : name;
            if (name.starts_with("missing"))
                return Error{ErrorCode::not_found, "model '" + printable(name) + "'", "a model", "none", ""};
            target.settings.keep_alive = KeepAlive{-1};
            target.entry.id = target.id;
            target.entry.architecture = "llama";
            return target;
        };
        parts.make_engine = [this](const ModelTarget& target) -> Result<std::unique_ptr<EngineHandle>> {
            auto engine = std::make_unique<HttpEngine>(target.id);
            engine->state = first_state.load();
            engine->table = table;
            std::lock_guard lock(mutex_);
            engines_[target.id] = engine.get();
            return std::unique_ptr<EngineHandle>(std::move(engine));
        };
        parts.times.early_head = 20s;
        parts.times.ping = 20s;
        if (change_parts) change_parts(parts);
        supervisor = std::make_unique<Supervisor>(context, parts);
        auto bound = supervisor->bind();
        ASSERT_TRUE(bound.ok()) << bound.error().message();
        port = *bound;
        ASSERT_TRUE(supervisor->start_models().ok());
        thread_ = std::thread([this] { supervisor->serve(); });
    }
    void TearDown() override {
        if (supervisor) supervisor->stop();
        if (thread_.joinable()) thread_.join();
    }
    httplib::Client client() {
        httplib::Client client("127.0.0.1", port);
        client.set_read_timeout(kPatience);
        client.set_keep_alive(true);
        client.set_path_encode(false);
        return client;
    }
    HttpEngine& engine(const std::string& id = "m") {
        wait_until([&] {
            std::lock_guard lock(mutex_);
            return engines_.count(id) > 0;
        });
        std::lock_guard lock(mutex_);
        return *engines_.at(id);
    }
    httplib::Result post(const std::string& path, const std::string& body) {
        return client().Post(path, body, "application/json");
    }
    void expect_alive() {
        auto answer = post("/v1/echo", "{}");
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200) << answer->body;
    }
    static void expect_error(const httplib::Result& answer, int status) {
        ASSERT_TRUE(answer) << httplib::to_string(answer.error());
        EXPECT_EQ(answer->status, status) << answer->body;
        json body = json::parse(answer->body, nullptr, false);
        ASSERT_TRUE(body.is_object()) << answer->body;
        EXPECT_EQ(body["error"]["code"], status);
        EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
        EXPECT_FALSE(body["error"]["type"].get<std::string>().empty());
    }

    std::shared_ptr<StreamTable> table;  // set before start(): engines write to clients themselves
    std::unique_ptr<Supervisor> supervisor;
    int port = 0;
    std::atomic<EngineState> first_state{EngineState::ready};
    std::atomic<bool> bad_reload{false};
    ServeConfig reloaded;

private:
    std::thread thread_;
    std::mutex mutex_;
    std::map<std::string, HttpEngine*> engines_;
};

// The engines are threads of this process, whose sends engine/direct_stream.h redirects as an engine process's.
class DirectSupervisorTest : public SupervisorTest {
protected:
    void take_sockets() {
        table = std::make_shared<StreamTable>();
        install_direct_streams(table.get());
    }
    void TearDown() override {
        SupervisorTest::TearDown();
        install_direct_streams(nullptr);
    }
    // Of a model's requests that have ended.
    double metric(const std::string& name, const std::string& labels = "model=\"m\"") {
        auto answer = client().Get("/metrics");
        const std::string line = "\n" + name + "{" + labels + "} ";
        const size_t at = answer ? answer->body.find(line) : std::string::npos;
        return at == std::string::npos ? -1 : std::strtod(answer->body.c_str() + at + line.size(), nullptr);
    }
};

}  // namespace onebit::testing
