// If this fails, ps and unload ask the wrong address, or hide what the server says.
#include "app/server_client.h"

#include <cpp-httplib/httplib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ServerAddress, Forms) {
    auto text = [](const char* given) {
        Result<ServerAddress> address = parse_server_address(given);
        return address.ok() ? address->text() : "error: " + address.error().message();
    };
    EXPECT_EQ(text("http://h:1"), "http://h:1");
    EXPECT_EQ(text("http://h:1/"), "http://h:1");
    EXPECT_EQ(text("h"), "http://h:8080");
    EXPECT_EQ(text("h:65535"), "http://h:65535");
    EXPECT_EQ(text(":81"), "http://127.0.0.1:81");
    EXPECT_EQ(text("[::1]:81"), "http://[::1]:81");
    EXPECT_EQ(text("[::1]"), "http://[::1]:8080");
    EXPECT_EQ(text("::1"), "http://[::1]:8080");
    for (const char* wrong :
         {"", "http://", "h:0", "h:65536", "h:x", "h:", "[::1", "[::1]x", "[]", "h/path", "u@h", "a b", "h:-1", ":"})
        EXPECT_THAT(text(wrong), HasSubstr("error")) << wrong;
    EXPECT_THAT(text("https://h"), HasSubstr("TLS"));
}

TEST(ReachableHost, Wildcards) {
    EXPECT_EQ(reachable_host("0.0.0.0"), "127.0.0.1");
    EXPECT_EQ(reachable_host("::"), "::1");
    EXPECT_EQ(reachable_host("10.0.0.1"), "10.0.0.1");
}

class AskServer : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "ask-XXXXXX";
        folder_ = mkdtemp(name.data());
        setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
        unsetenv("ONEBIT_HOST");
        unsetenv("ONEBIT_API_KEY");
        server_.Get("/onebit/ps", [](const httplib::Request& request, httplib::Response& response) {
            response.set_content("{\"engines\":[],\"key\":\"" + request.get_header_value("Authorization") + "\"}",
                                 "application/json");
        });
        server_.Post("/onebit/unload", [](const httplib::Request&, httplib::Response& response) {
            response.status = 404;
            response.set_content(R"({"error":{"message":"model 'x': not loaded","code":404}})", "application/json");
        });
        server_.Get("/locked", [](const httplib::Request&, httplib::Response& response) { response.status = 401; });
        port_ = server_.bind_to_any_port("127.0.0.1");
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        server_.wait_until_ready();
        flags_.port = uint16_t(port_);
    }
    void TearDown() override {
        server_.stop();
        thread_.join();
        std::filesystem::remove_all(folder_);
    }
    void write_config(const std::string& text) {
        std::filesystem::create_directories(folder_ / "1bit");
        std::ofstream(folder_ / "1bit" / "onebit.yaml") << text;
    }
    std::filesystem::path folder_;
    httplib::Server server_;
    int port_ = 0;
    std::thread thread_;
    ServerFlags flags_;
};

TEST_F(AskServer, AnswersAndErrors) {
    EXPECT_THAT(*ask_server(flags_, "/onebit/ps", ""), HasSubstr("engines"));
    Result<std::string> missing = ask_server(flags_, "/onebit/unload", "{}");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_THAT(missing.error().message(), HasSubstr("not loaded"));
    EXPECT_THAT(ask_server(flags_, "/locked", "").error().message(),
                AllOf(HasSubstr("401"), HasSubstr("--api-key-file")));
    EXPECT_THAT(ask_server(flags_, "/unknown", "").error().message(), HasSubstr("/unknown"));
}

TEST_F(AskServer, KeysFromFlagEnvironmentAndFile) {
    flags_.api_keys = {"flag"};
    EXPECT_THAT(*ask_server(flags_, "/onebit/ps", ""), HasSubstr("Bearer flag"));
    flags_.api_keys.clear();
    setenv("ONEBIT_API_KEY", "variable", 1);
    EXPECT_THAT(*ask_server(flags_, "/onebit/ps", ""), HasSubstr("Bearer variable"));
    unsetenv("ONEBIT_API_KEY");
    write_config("api_keys: [file]\n");
    EXPECT_THAT(*ask_server(flags_, "/onebit/ps", ""), HasSubstr("Bearer file"));
}

TEST_F(AskServer, WhereTheServerIs) {
    write_config("host: 0.0.0.0\nport: 81\n");
    EXPECT_EQ(server_address({})->text(), "http://127.0.0.1:81");
    setenv("ONEBIT_HOST", "box:82", 1);
    EXPECT_EQ(server_address({})->text(), "http://box:82");
    ServerFlags flags;
    flags.port = 83;
    EXPECT_EQ(server_address(flags)->text(), "http://box:83");
    flags.url = "other:84";
    EXPECT_EQ(server_address(flags)->text(), "http://other:84");
    setenv("ONEBIT_HOST", "a b", 1);
    EXPECT_THAT(server_address({}).error().message(), HasSubstr("ONEBIT_HOST"));
    unsetenv("ONEBIT_HOST");
    write_config("port: 0\n");
    EXPECT_THAT(server_address({}).error().message(), HasSubstr("--port"));
}

TEST_F(AskServer, NobodyListens) {
    ServerFlags flags;
    {
        httplib::Server closed;
        flags.port = uint16_t(closed.bind_to_any_port("127.0.0.1"));
        closed.stop();
    }
    Result<std::string> answer = ask_server(flags, "/onebit/ps", "");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_THAT(answer.error().message(), AllOf(HasSubstr(std::to_string(*flags.port)), HasSubstr("1bit serve")));
}

TEST(EnginesTable, Rows) {
    EXPECT_THAT(*engines_table(R"({"engines":[]})"), HasSubstr("no model is loaded"));
    std::string table = *engines_table(
        R"({"engines":[{"id":"a","state":"ready","pid":12,"devices":["CPU"],"resident_bytes":1048576,"context_per_slot":512,"slots":4,
        "requests_in_flight":1,"restarts":2,"keep_alive_left_seconds":12.7,"last_failure":"signal 9","last_output":"one\ntwo"},
        {"id":"b","state":"starting","load_progress":0.5,"keep_alive_left_seconds":null},{"id":7},3]})");
    EXPECT_THAT(table, AllOf(HasSubstr("1.0 MiB"), HasSubstr("12 s"), HasSubstr("starting 50 %"), HasSubstr("stays"),
                             HasSubstr("signal 9\n    one\n    two\n")));
    EXPECT_THAT(table, Not(HasSubstr("LAYERS")));
    for (const char* wrong : {"", "x", "[]", "{}", "{\"engines\":{}}", "<html>"})
        EXPECT_FALSE(engines_table(wrong).ok()) << wrong;
}

TEST(EnginesTable, MembersThatAreLeftOutAndWhy) {
    std::string table = *engines_table(
        R"({"engines":[{"id":"a","state":"ready","devices":["CPU","Vulkan0"],"excluded_members":[
        {"member":"CUDA0","reason":"hung\u001b[31m"},7]},{"id":"b","excluded_members":7}]})");
    EXPECT_THAT(table, AllOf(HasSubstr("CPU,Vulkan0"), HasSubstr("a: without CUDA0: hung"), Not(HasSubstr("\033"))));
}

// DEV27
TEST(EnginesTable, DEV27_WhatLiesOnEachDevice) {
    std::string table = *engines_table(
        R"({"engines":[{"id":"a","state":"ready","memory":[
        {"device":"CPU","layers":8,"weights_bytes":1048576,"kv_cache_bytes":2097152,"compute_bytes":3145728},
        {"device":"Vulkan0\u001b[31m","layers":24,"weights_bytes":"x"},7]},{"id":"b","memory":7}]})");
    EXPECT_THAT(table, testing::ContainsRegex("MODEL +DEVICE +LAYERS +WEIGHTS +KV CACHE +COMPUTE"));
    EXPECT_THAT(table, testing::ContainsRegex("a +CPU +8 +1.0 MiB +2.0 MiB +3.0 MiB"));
    EXPECT_THAT(table, HasSubstr("24"));
    EXPECT_THAT(table, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace onebit
