// Breaks when the server as a process does not start, drain, stop or survive its engines as it must. The engine is a
// real child process; only what it answers is made up (fake_engine_http.cpp).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "server/supervisor/banner.h"
#include "server/supervisor/run_program.h"
#include "tests/server/gguf_writer.h"
#include "tests/server/supervisor_testing.h"

extern char** environ;

namespace onebit {
namespace {

using namespace std::chrono_literals;
using namespace onebit::testing;
using nlohmann::json;

// `fake-1bit serve` with its output in a file.
class Server {
public:
    explicit Server(const std::string& model, std::vector<std::string> environment = {}, int port = 0) {
        log_file_ = folder_.path() / "log";
        std::vector<std::string> words = {FAKE_1BIT, "serve", model, std::to_string(port)};
        std::vector<char*> argv, env;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        for (char** at = environ; *at; at++) env.push_back(*at);
        for (std::string& one : environment) env.push_back(one.data());
        env.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
        EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), env.data()), 0);
        posix_spawn_file_actions_destroy(&actions);
    }
    ~Server() {
        if (pid > 0) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    std::string log() const {
        std::ifstream file(log_file_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    bool open() {
        return wait_until([&] {
                   std::string text = log();
                   size_t at = text.find("listening on http://127.0.0.1:");
                   if (at == std::string::npos || text.find('\n', at) == std::string::npos) return ended();
                   port = std::atoi(text.c_str() + at + 30);
                   return true;
               }) &&
               port > 0;
    }
    bool ready() {
        return open() && wait_until([&] {
                   auto health = client().Get("/health");
                   return health && health->status == 200;
               });
    }
    bool ended() {
        if (pid <= 0) return true;
        int status = 0;
        if (::waitpid(pid, &status, WNOHANG) != pid) return false;
        pid = 0;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return true;
    }
    httplib::Client client() {
        httplib::Client client("127.0.0.1", port);
        client.set_read_timeout(kPatience);
        return client;
    }
    pid_t engine() {
        auto answer = client().Get("/onebit/ps");
        if (!answer) return 0;
        json ps = json::parse(answer->body, nullptr, false);
        return ps["engines"].empty() ? 0 : ps["engines"][0]["pid"].get<pid_t>();
    }

    pid_t pid = 0;
    int port = 0, code = -1;

private:
    TempFolder folder_;
    std::filesystem::path log_file_;
};

class ServerTest : public ::testing::Test {
protected:
    void SetUp() override {
        model = folder.path() / "test-model.gguf";
        std::ofstream(model, std::ios::binary) << onebit::test::listed_model().bytes();
    }
    TempFolder folder;
    std::filesystem::path model;
};

TEST_F(ServerTest, says_what_it_does_and_its_curl_line_is_right) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    ASSERT_TRUE(wait_until([&] { return server.log().find("devices: Test CPU (CPU)") != std::string::npos; }))
        << server.log();
    std::string log = server.log();
    EXPECT_NE(log.find("model: test-model"), std::string::npos) << log;
    EXPECT_NE(log.find("4 slots of 4096 tokens"), std::string::npos) << log;  // API23
    size_t at = log.find("\ncurl http://127.0.0.1:" + std::to_string(server.port) + "/v1/chat/completions");
    ASSERT_NE(at, std::string::npos) << log;
    std::string line = log.substr(at + 1, log.find('\n', at + 1) - at - 1);
    auto result =
        run_program("/bin/sh", {"-c", "set -- " + line + "; for word; do :; done; printf %s \"$word\""}, kPatience);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(json::parse(result->output, nullptr, false).is_object()) << result->output;
    json ps = json::parse(server.client().Get("/onebit/ps")->body);
    EXPECT_EQ(ps["engines"][0]["context_per_slot"], 512);
    EXPECT_GT(ps["engines"][0]["resident_bytes"].get<uint64_t>(), 0u);
}

TEST(StartLines, name_an_address_that_clients_can_use_and_the_one_that_is_bound) {
    const auto first = [](const char* host) {
        ServeConfig config;
        config.host = host;
        return start_lines(config, 8080, "m", "m").front();
    };
    EXPECT_EQ(first("127.0.0.1"), "listening on http://127.0.0.1:8080");
    EXPECT_EQ(first("0.0.0.0"), "listening on http://127.0.0.1:8080 (bound to 0.0.0.0, all addresses of this machine)");
    EXPECT_EQ(first("::"), "listening on http://[::1]:8080 (bound to ::, all addresses of this machine)");
    EXPECT_EQ(first("10.0.0.1"), "listening on http://10.0.0.1:8080");
}

TEST(StartLines, try_a_model_that_is_loaded) {
    const std::vector<std::string> lines = start_lines({}, 8080, "builtin", "preloaded");
    EXPECT_EQ(lines.at(1), "models: loaded on demand, 1 at a time; default builtin");
    EXPECT_NE(lines.at(2).find(R"("model":"preloaded")"), std::string::npos) << lines.at(2);
}

// UX10, UX21
TEST_F(ServerTest, UX10_an_engine_that_dies_before_it_answers_is_a_503_with_the_reason) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    pid_t old = server.engine();
    auto answer = server.client().Post("/v1/chat/completions", "{\"die\":true}", "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503) << answer->body;
    json body = json::parse(answer->body);
    EXPECT_EQ(body["error"]["type"], "engine_failed");
    EXPECT_NE(answer->body.find("signal 9"), std::string::npos) << answer->body;
    ASSERT_TRUE(server.ready()) << "it must be started again\n" << server.log();
    EXPECT_NE(server.engine(), old);
}

TEST_F(ServerTest, a_request_that_ends_its_engine_is_not_sent_to_the_next_one) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    auto post = [&](const std::string& body) { return server.client().Post("/completion", body, "application/json"); };
    auto first = post("{\"abort\":true}");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->status, 503) << first->body;
    EXPECT_FALSE(first->has_header("Retry-After")) << "it must not be asked for again";
    EXPECT_NE(first->body.find("signal 6"), std::string::npos) << first->body;
    ASSERT_TRUE(server.ready()) << server.log();
    const pid_t second_engine = server.engine();
    auto again = post("{\"abort\":true}");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->status, 400) << again->body;
    EXPECT_NE(again->body.find("request_ends_engine"), std::string::npos) << again->body;
    EXPECT_EQ(post("{\"dribble\":true}")->status, 200) << "others are served";
    EXPECT_EQ(server.engine(), second_engine);
    // killed from outside: may be chance once
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(server.ready()) << server.log();
        auto killed = post("{\"die\":true}");
        ASSERT_TRUE(killed);
        EXPECT_EQ(killed->status, 503) << killed->body;
        EXPECT_EQ(killed->has_header("Retry-After"), i == 0) << killed->body;
    }
    EXPECT_EQ(post("{\"die\":true}")->status, 400);
}

TEST_F(ServerTest, requests_beside_one_that_ends_engines_are_not_refused_with_it) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    const std::string innocent = R"({"stream":true,"events":3,"hold":true})", fatal = R"({"abort":true})";
    {
        RawClient beside(server.port);
        ASSERT_TRUE(beside.send(raw_post("/v1/chat/completions", innocent)));
        ASSERT_TRUE(beside.read_until("{\"n\":0}"));
        auto told = server.client().Post("/completion", fatal, "application/json");
        ASSERT_TRUE(told);
        EXPECT_EQ(told->status, 503) << told->body;
        EXPECT_TRUE(told->has_header("Retry-After")) << "either may be it";
        ASSERT_TRUE(beside.read_until("engine_failed")) << beside.text;
    }
    // both come again at once: they run one after the other
    ASSERT_TRUE(server.ready()) << server.log();
    RawClient beside(server.port);
    ASSERT_TRUE(beside.send(raw_post("/v1/chat/completions", innocent)));
    ASSERT_TRUE(beside.read_until("{\"n\":0}"));
    RawClient waits(server.port);
    ASSERT_TRUE(waits.send(raw_post("/completion", fatal)));
    ASSERT_TRUE(wait_until(
        [&] { return json::parse(server.client().Get("/onebit/ps")->body)["requests_in_flight"].get<int>() == 3; }));
    beside.close();
    ASSERT_TRUE(waits.read_to_end());
    EXPECT_TRUE(waits.text.starts_with("HTTP/1.1 503")) << waits.text;
    EXPECT_EQ(waits.text.find("Retry-After"), std::string::npos) << waits.text;
    ASSERT_TRUE(server.ready()) << server.log();
    EXPECT_EQ(server.client().Post("/completion", fatal, "application/json")->status, 400);
    RawClient again(server.port);
    ASSERT_TRUE(again.send(raw_post("/v1/chat/completions", innocent)));
    EXPECT_TRUE(again.read_until("{\"n\":0}")) << again.text;
}

TEST_F(ServerTest, UX10_an_engine_that_dies_in_a_stream_ends_it_with_an_error) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    std::string text;
    auto answer = server.client().Post("/v1/chat/completions", {}, "{\"stream\":true,\"events\":9,\"die_after\":4}",
                                       "application/json", [&](const char* data, size_t size) {
                                           text.append(data, size);
                                           return true;
                                       });
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_NE(text.find("{\"n\":3}"), std::string::npos);
    EXPECT_NE(text.find("\"engine_failed\""), std::string::npos) << text;
}

TEST_F(ServerTest, engines_that_do_not_speak_http_well) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    auto post = [&](const std::string& body) { return server.client().Post("/completion", body, "application/json"); };
    EXPECT_EQ(post("{\"garbage\":true}")->status, 502);
    EXPECT_EQ(post("{\"short\":true}")->status, 503);
    auto slow = post("{\"dribble\":true}");
    ASSERT_TRUE(slow);
    EXPECT_EQ(slow->status, 200);
    EXPECT_EQ(slow->body, "slowly!");
    // a client that leaves an engine that never answers leaves nothing behind
    RawClient raw(server.port);
    ASSERT_TRUE(raw.send(raw_post("/completion", "{\"never\":true}")));
    auto in_flight = [&] {
        return json::parse(server.client().Get("/onebit/ps")->body)["engines"][0]["requests_in_flight"].get<int>();
    };
    ASSERT_TRUE(wait_until([&] { return in_flight() == 1; }));
    raw.close();
    EXPECT_TRUE(wait_until([&] { return in_flight() == 0; }));
}

TEST_F(ServerTest, a_request_that_waits_for_its_turn_is_told_that_the_server_stops) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    const std::string held = R"({"stream":true,"events":3,"hold":true})";
    const std::string path = "/v1/chat/completions", other = R"({"stream":true,"events":4,"hold":true})";
    {
        RawClient first(server.port), second(server.port);
        ASSERT_TRUE(first.send(raw_post(path, held)) && second.send(raw_post(path, other)));
        ASSERT_TRUE(first.read_until("{\"n\":0}") && second.read_until("{\"n\":0}"));
        ::kill(server.engine(), SIGKILL);
        ASSERT_TRUE(first.read_until("engine_failed") && second.read_until("engine_failed"));
    }
    ASSERT_TRUE(server.ready()) << server.log();
    RawClient runs(server.port), waits(server.port);
    ASSERT_TRUE(runs.send(raw_post(path, held)));
    ASSERT_TRUE(runs.read_until("{\"n\":0}"));
    ASSERT_TRUE(waits.send(raw_post(path, other)));
    ASSERT_TRUE(wait_until(
        [&] { return json::parse(server.client().Get("/onebit/ps")->body)["requests_in_flight"].get<int>() == 3; }));
    ::kill(server.pid, SIGTERM);
    ASSERT_TRUE(waits.read_to_end());
    EXPECT_TRUE(waits.text.starts_with("HTTP/1.1 503 ")) << waits.text;
    EXPECT_NE(waits.text.find("the server is stopping"), std::string::npos) << waits.text;
    runs.close();
    ASSERT_TRUE(wait_until([&] { return server.ended(); })) << server.log();
    EXPECT_EQ(server.code, 0);
}

TEST_F(ServerTest, SIGTERM_drains_and_ends_with_zero) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    RawClient stream(server.port);
    ASSERT_TRUE(stream.send(raw_post("/v1/chat/completions", "{\"stream\":true,\"events\":300,\"delay_ms\":5}")));
    ASSERT_TRUE(stream.read_until("{\"n\":2}"));
    pid_t engine = server.engine();
    ::kill(server.pid, SIGTERM);
    ASSERT_TRUE(wait_until([&] { return server.log().find("stopping") != std::string::npos; }));
    auto late = server.client().Get("/v1/models");
    EXPECT_TRUE(!late || late->status == 503);
    ASSERT_TRUE(stream.read_until("{\"n\":299}")) << stream.text.size();
    ASSERT_TRUE(wait_until([&] { return server.ended(); })) << server.log();
    EXPECT_EQ(server.code, 0);
    EXPECT_NE(::kill(engine, 0), 0) << "the engine is still there";
}

TEST_F(ServerTest, a_second_SIGTERM_ends_it_at_once) {
    Server server(model);
    ASSERT_TRUE(server.ready()) << server.log();
    RawClient stream(server.port);
    ASSERT_TRUE(stream.send(raw_post("/v1/chat/completions", "{\"stream\":true,\"events\":1000000,\"delay_ms\":5}")));
    ASSERT_TRUE(stream.read_until("{\"n\":2}"));
    ::kill(server.pid, SIGTERM);
    ASSERT_TRUE(wait_until([&] { return server.log().find("stopping") != std::string::npos; }));
    EXPECT_FALSE(server.ended());
    ::kill(server.pid, SIGTERM);
    ASSERT_TRUE(wait_until([&] { return server.ended(); })) << server.log();
    EXPECT_TRUE(stream.read_to_end());
}

TEST_F(ServerTest, requests_that_outlast_the_drain_time_are_told_and_an_engine_that_stays_is_killed) {
    for (const bool second_signal : {false, true}) {
        Server server(model, {"FAKE_DRAIN=" + std::string(second_signal ? "600" : "1"), "FAKE_ENGINE_STAYS=1"});
        ASSERT_TRUE(server.ready()) << server.log();
        RawClient stream(server.port), whole(server.port);
        ASSERT_TRUE(stream.send(raw_post("/v1/messages", R"({"stream":true,"events":1000000,"delay_ms":5})")));
        ASSERT_TRUE(stream.read_until("{\"n\":2}"));
        ASSERT_TRUE(whole.send(raw_post("/completion", R"({"never":true})")));
        ASSERT_TRUE(wait_until([&] {
            return json::parse(server.client().Get("/onebit/ps")->body)["requests_in_flight"].get<int>() == 3;
        }));
        const pid_t engine = server.engine();
        ::kill(server.pid, SIGTERM);
        if (second_signal) {
            ASSERT_TRUE(wait_until([&] { return server.log().find("stopping") != std::string::npos; }));
            ::kill(server.pid, SIGTERM);
        }
        ASSERT_TRUE(stream.read_to_end());
        ASSERT_TRUE(whole.read_to_end());
        ASSERT_TRUE(wait_until([&] { return server.ended(); })) << server.log();
        EXPECT_EQ(server.code, 0) << server.log();
        EXPECT_NE(::kill(engine, 0), 0) << "the engine is still there";
        EXPECT_NE(server.log().find("of SIGTERM; killing it"), std::string::npos) << server.log();
        EXPECT_NE(
            stream.text.find(
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":503,\"message\":\"the server is stopping"),
            std::string::npos)
            << stream.text.substr(stream.text.size() - 300);
        EXPECT_TRUE(stream.text.ends_with("\r\n0\r\n\r\n"));
        EXPECT_TRUE(whole.text.starts_with("HTTP/1.1 503 ")) << whole.text;
        EXPECT_NE(whole.text.find("the server is stopping"), std::string::npos) << whole.text;
    }
}

// DEV18, BD14
TEST_F(ServerTest, DEV18_BD14_a_probe_that_crashes_is_told_and_does_not_stop_the_start) {
    Server server(model, {"FAKE_PLAN=crash"});
    ASSERT_TRUE(server.ready()) << server.log();
    EXPECT_NE(server.log().find("signal 11"), std::string::npos) << server.log();
    EXPECT_NE(server.log().find("the driver fell over"), std::string::npos);
}

TEST_F(ServerTest, what_does_not_fit_is_refused_with_the_table) {
    Server server(model, {"FAKE_PLAN=full"});
    ASSERT_TRUE(wait_until([&] { return server.ended(); }));
    EXPECT_EQ(server.code, 1);
    EXPECT_NE(server.log().find("CPU  9 GiB  1 GiB"), std::string::npos) << server.log();
    EXPECT_NE(server.log().find("a context of 512 would fit"), std::string::npos);
}

// DEV17
TEST_F(ServerTest, DEV17_an_engine_that_never_starts_ends_the_server_with_its_words) {
    Server server(model, {"FAKE_ENGINE_FAILS=1"});
    ASSERT_TRUE(wait_until([&] { return server.ended(); }));
    EXPECT_EQ(server.code, 1);
    EXPECT_NE(server.log().find("does not like its arguments"), std::string::npos) << server.log();
}

TEST_F(ServerTest, arguments_that_llama_cpp_does_not_take_are_wrong_usage_and_not_tried_again) {
    const std::filesystem::path record = folder.path() / "arguments";
    Server server(model, {"FAKE_ENGINE_REFUSES=1", "FAKE_ARGUMENTS=" + record.string()});
    ASSERT_TRUE(wait_until([&] { return server.ended(); }));
    EXPECT_EQ(server.code, 2);
    EXPECT_NE(server.log().find("error: invalid argument: --bogus"), std::string::npos) << server.log();
    std::ifstream file(record);
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 1) << "one start";
}

TEST_F(ServerTest, the_engine_gets_its_arguments) {
    std::filesystem::path record = folder.path() / "arguments";
    Server server(model, {"FAKE_ARGUMENTS=" + record.string()});
    ASSERT_TRUE(server.ready()) << server.log();
    std::ifstream file(record);
    std::string line;
    std::getline(file, line);
    for (const std::string& part :
         {"--model " + model.string(), std::string("--alias test-model"), std::string("--ctx-size 16384 --parallel 4")})
        EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << line;
}

TEST_F(ServerTest, wrong_starts_end_with_a_clear_line) {
    Server missing(folder.path() / "no-such.gguf");
    ASSERT_TRUE(wait_until([&] { return missing.ended(); }));
    EXPECT_EQ(missing.code, 1);
    EXPECT_NE(missing.log().find("no-such.gguf"), std::string::npos) << missing.log();

    Server first(model);
    ASSERT_TRUE(first.open()) << first.log();
    Server second(model, {}, first.port);
    ASSERT_TRUE(wait_until([&] { return second.ended(); }));
    EXPECT_EQ(second.code, 1);
    EXPECT_NE(second.log().find("pid " + std::to_string(first.pid)), std::string::npos) << second.log();
}

TEST(RunProgram, outcomes) {
    auto shell = [](const std::string& line, std::chrono::milliseconds limit,
                    const std::atomic<bool>* cancel = nullptr) {
        auto result = run_program("/bin/sh", {"-c", line}, limit, cancel);
        EXPECT_TRUE(result.ok());
        return *result;
    };
    EXPECT_EQ(shell("echo out; echo err >&2; exit 3", kPatience).exit_code, 3);
    EXPECT_EQ(shell("echo out; echo err >&2", kPatience).output, "out\n");
    EXPECT_EQ(shell("echo out; echo err >&2", kPatience).error_output, "err\n");
    EXPECT_EQ(shell("kill -SEGV $$", kPatience).signal, SIGSEGV);
    EXPECT_TRUE(shell("sleep 1000", 50ms).timed_out);
    EXPECT_TRUE(shell("exec >&- 2>&-; sleep 1000", 50ms).timed_out);
    std::atomic<bool> cancel{true};
    EXPECT_TRUE(shell("sleep 1000", kPatience, &cancel).timed_out);
    EXPECT_LE(shell("head -c 100000 /dev/zero >&2", kPatience).error_output.size(), 4096u);
    EXPECT_FALSE(run_program("/no/such/program", {}, kPatience).ok());
}

}  // namespace
}  // namespace onebit
