// Breaks when the supervisor's own routes do not tell the state, let the wrong ones in, or a stop loses requests.
#include "tests/server/supervisor_fixture.h"

namespace onebit::testing {
namespace {

// API38, API39
TEST_F(SupervisorTest, API38_API39_keys_and_origins_over_http) {
    start([](ServeConfig& config) {
        config.api_keys = {"k"};
        config.cors_origins = {"https://good.example"};
    });
    auto http = client();
    EXPECT_EQ(http.Get("/health")->status, 200);
    EXPECT_EQ(http.Get("/v1/health")->status, 200);
    for (const char* path : {"/metrics", "/v1/models", "/onebit/ps", "/props"}) expect_error(client().Get(path), 401);
    expect_error(post("/onebit/unload", "{\"model\":\"m\"}"), 401);
    EXPECT_EQ(client().Get("/metrics", httplib::Headers{{"Authorization", "Bearer k"}})->status, 200);
    EXPECT_EQ(client().Get("/v1/models", httplib::Headers{{"X-Api-Key", "k"}})->status, 200);
    expect_error(client().Get("/health", httplib::Headers{{"Origin", "https://evil.example"}}), 403);
    auto evil = client().Options("/v1/chat/completions",
                                 {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "POST"}});
    EXPECT_EQ(evil->status, 403);
    EXPECT_FALSE(evil->has_header("Access-Control-Allow-Origin"));
    auto good = client().Options(
        "/v1/chat/completions",
        httplib::Headers{{"Origin", "https://good.example"}, {"Access-Control-Request-Headers", "x-a, authorization"}});
    EXPECT_EQ(good->status, 204);
    EXPECT_EQ(good->get_header_value("Access-Control-Allow-Origin"), "https://good.example");
    EXPECT_EQ(good->get_header_value("Access-Control-Allow-Headers"), "x-a, authorization");
    EXPECT_FALSE(good->has_header("Access-Control-Allow-Credentials"));
    auto real = client().Get("/health", httplib::Headers{{"Origin", "https://good.example"}});
    EXPECT_EQ(real->get_header_value("Access-Control-Allow-Origin"), "https://good.example");
    expect_error(client().Get("/health", httplib::Headers{{"Host", "evil.example"}}), 403);
}

TEST_F(SupervisorTest, health_tells_the_state) {
    first_state = EngineState::starting;
    start([](ServeConfig& config) { config.model = "m"; });
    engine().progress = 0.42;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->body.find("0.42") != std::string::npos; }));
    auto loading = client().Get("/health");
    EXPECT_EQ(loading->status, 503);
    EXPECT_EQ(loading->get_header_value("Retry-After"), "1");
    EXPECT_EQ(json::parse(loading->body)["status"], "loading");
    auto refused = post("/v1/chat/completions", "{\"model\":\"other\"}");
    expect_error(refused, 503);
    EXPECT_FALSE(refused->get_header_value("Retry-After").empty());
    engine().state = EngineState::ready;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"whatever\"}")->get_header_value("X-Engine"), "m");
    engine().state = EngineState::failed;
    auto failed = client().Get("/health");
    EXPECT_EQ(failed->status, 503);
    EXPECT_NE(failed->body.find("signal 9"), std::string::npos) << failed->body;
}

TEST_F(SupervisorTest, why_an_engine_ended_is_told_without_its_own_lines_but_to_who_may_ask_ps) {
    first_state = EngineState::starting;
    start([](ServeConfig& config) {
        config.model = "m";
        config.api_keys = {"k"};
    });
    const httplib::Headers key = {{"Authorization", "Bearer k"}};
    const auto told = [&] {
        const std::string health = client().Get("/health")->body;
        return health + client().Post("/v1/chat/completions", key, "{}", "application/json")->body;
    };
    const auto expect_cause_alone = [&](const char* cause) {
        const std::string text = told();
        EXPECT_NE(text.find(cause), std::string::npos) << text;
        EXPECT_EQ(text.find("somebody"), std::string::npos) << text;
        const json row = json::parse(client().Get("/onebit/ps", key)->body)["engines"][0];
        EXPECT_EQ(row["last_output"], HttpEngine::kLastOutput) << row;
    };
    engine().restarting = true;
    expect_cause_alone("signal 11");
    engine().restarting = false;
    engine().state = EngineState::failed;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->body.find("\"failed\"") != std::string::npos; }));
    expect_cause_alone("signal 9");
}

TEST_F(SupervisorTest, a_path_that_nothing_is_under_is_named_in_the_form_of_its_api) {
    start([](ServeConfig& config) { config.model = "m"; });
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    for (const char* path : {"/v1/responses/resp_1/cancel", "/v1/responses/resp_1", "/v1/nothing", "/onebit/nothing"}) {
        auto answer = client().Post(path);
        expect_error(answer, 404);
        EXPECT_NE(answer->body.find("'" + std::string(path) + "'"), std::string::npos) << answer->body;
        EXPECT_FALSE(json::parse(answer->body).contains("type"));
    }
    for (const auto& answer : {client().Get("/v1/messages/batches"), client().Post("/v1/messages/batches"),
                               client().Delete("/v1/messages/batches/1")}) {
        expect_error(answer, 404);
        EXPECT_EQ(json::parse(answer->body)["type"], "error") << answer->body;
        EXPECT_NE(answer->body.find("/v1/messages/batches"), std::string::npos) << answer->body;
    }
    // llama.cpp's own 404 names no path
    auto of_engine = post("/v1/engine-404", "{}");
    expect_error(of_engine, 404);
    EXPECT_NE(of_engine->body.find("'/v1/engine-404'"), std::string::npos) << of_engine->body;
    const std::string longer(1000, 'x');
    auto cut = client().Post("/v1/responses/" + longer);
    expect_error(cut, 404);
    EXPECT_EQ(cut->body.find(longer), std::string::npos);
}

// UX11
TEST_F(SupervisorTest, UX11_health_tells_of_an_engine_that_starts_again_or_stands_still) {
    start([](ServeConfig& config) { config.model = "m"; });
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    engine().stalled = true;
    auto health = client().Get("/health");
    expect_error(health, 503);
    EXPECT_EQ(json::parse(health->body)["status"], "stalled");
    engine().stalled = false;
    EXPECT_EQ(client().Get("/health")->status, 200);
    engine().restarting = true;
    engine().state = EngineState::starting;
    health = client().Get("/health");
    expect_error(health, 503);
    EXPECT_EQ(json::parse(health->body)["status"], "restarting");
    EXPECT_NE(health->body.find("signal 11"), std::string::npos) << health->body;
    EXPECT_EQ(health->get_header_value("Retry-After"), "7");
    // requests are told the same time
    auto refused = post("/v1/chat/completions", "{}");
    expect_error(refused, 503);
    EXPECT_EQ(refused->get_header_value("Retry-After"), "7");
}

// UX02
TEST_F(SupervisorTest, UX02_looking_loads_nothing_on_demand) {
    start();
    for (const char* path : {"/health", "/v1/models", "/metrics", "/onebit/ps"}) {
        auto answer = client().Get(path);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200) << path;
    }
    EXPECT_EQ(json::parse(client().Get("/health")->body)["status"], "idle");
    expect_error(client().Get("/props"), 503);
    expect_error(client().Get("/no-such-thing"), 404);
    EXPECT_TRUE(supervisor->fleet().engines().empty());
    // the page that this server gave out wants to chat
    expect_error(client().Get("/props", httplib::Headers{{"Sec-Fetch-Site", "same-origin"}}), 503);
    ASSERT_TRUE(wait_until([&] { return client().Get("/props")->status == 200; }));
}

// UX22
TEST_F(SupervisorTest, UX22_who_opens_the_page_loads_the_default_model) {
    start();
    auto page = client().Get("/", httplib::Headers{{"Accept", "text/html,*/*"}});
    ASSERT_TRUE(page);
    if (page->status == 404) GTEST_SKIP() << "this build has no web page";
    engine("m");
    ASSERT_TRUE(wait_until([&] { return json::parse(client().Get("/health")->body)["status"] == "ok"; }));
}

// UX07, API23
TEST_F(SupervisorTest, UX07_API23_metrics_and_ps_name_models_and_measured_values) {
    start([](ServeConfig& config) { config.max_models = 2; });
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"a\"}")->get_header_value("X-Engine"), "a");
    EXPECT_EQ(post("/v1/echo", "{\"model\":\"b\"}")->get_header_value("X-Engine"), "b");
    auto metrics = client().Get("/metrics");
    ASSERT_TRUE(metrics);
    for (const char* line : {"llamacpp:n{model=\"a\"} 7", "llamacpp:n{model=\"b\"} 7",
                             "onebit_requests_total{model=\"a\",status=\"200\"} 1"})
        EXPECT_NE(metrics->body.find(line), std::string::npos) << line << "\n" << metrics->body;
    json ps = json::parse(client().Get("/onebit/ps")->body);
    ASSERT_EQ(ps["engines"].size(), 2u);
    for (const json& row : ps["engines"]) {
        EXPECT_EQ(row["state"], "ready");
        EXPECT_EQ(row["context_per_slot"], 2048);
        EXPECT_EQ(row["slots"], 4);
        EXPECT_EQ(row["resident_bytes"], 4096);
        EXPECT_EQ(row["pid"], ::getpid());
        EXPECT_TRUE(row["keep_alive_left_seconds"].is_null());
    }
    EXPECT_NE(client().Get("/props?model=a")->body.find("\"name\":\"a\""), std::string::npos);
    EXPECT_NE(client().Get("/props?model=b")->body.find("\"name\":\"b\""), std::string::npos);
    json models = json::parse(client().Get("/v1/models")->body);
    EXPECT_EQ(models["object"], "list");
    EXPECT_EQ(models["data"].size(), 2u);
    EXPECT_EQ(models["data"][0]["status"]["value"], "loaded");
    EXPECT_EQ(models["models"].size(), 2u);
}

TEST_F(SupervisorTest, one_model_is_what_the_list_has_under_its_name) {
    start([](ServeConfig& config) {
        config.max_models = 3;
        config.api_keys = {"k"};
    });
    const httplib::Headers key = {{"X-Api-Key", "k"}};
    const std::string slashes = "org/re po:Q4_K_M", utf8 = "m\u00f6del %2F?#";
    for (const std::string& name : {std::string("a"), slashes, utf8})
        ASSERT_EQ(client().Post("/v1/echo", key, json{{"model", name}}.dump(), "application/json")->status, 200);
    const json list = json::parse(client().Get("/v1/models", key)->body)["data"];
    ASSERT_EQ(list.size(), 3u);
    const std::pair<const char*, std::string> paths[] = {
        {"a", "a"},
        {"%61?x=y", "a"},
        {"org/re%20po:Q4_K_M", slashes},
        {"org%2Fre%20po%3aQ4_K_M", slashes},
        {"m%C3%B6del%20%252F%3F%23", utf8},
    };
    for (const auto& [path, name] : paths) {
        for (const std::string prefix : {"/v1/models/", "/models/"}) {
            auto answer = client().Get(prefix + path, key);
            ASSERT_TRUE(answer) << path;
            EXPECT_EQ(answer->status, 200) << path << answer->body;
            const json one = json::parse(answer->body, nullptr, false);
            EXPECT_EQ(one["id"], name) << path;
            EXPECT_EQ(one["object"], "model");
            EXPECT_EQ(std::count(list.begin(), list.end(), one), 1) << answer->body;
        }
        expect_error(client().Get(std::string("/v1/models/") + path), 401);
    }
    auto head = client().Head("/v1/models/a", key);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
    for (const char* path : {"b", "A", "a/", "/a", "%00", "%", "%ff", "a%0d%0aX:%20y", "../a", ""})
        expect_error(client().Get(std::string("/v1/models/") + path, key), 404);
    expect_error(client().Get("/v1/models/" + std::string(4000, 'x'), key), 404);
    expect_error(client().Delete("/v1/models/a", key), 405);
    EXPECT_NE(client().Get("/v1/models/no-such", key)->body.find("model 'no-such'"), std::string::npos);
}

TEST_F(SupervisorTest, one_model_has_all_its_names_and_an_id_goes_first) {
    start([](ServeConfig& config) { config.max_models = 2; },
          [](SupervisorParts& parts) {
              parts.resolve = [](const std::string& name) -> Result<ModelTarget> {
                  ModelTarget target;
                  target.id = target.entry.id = name;
                  if (name == "m") target.aliases = {"other", "x/y"};
                  return target;
              };
          });
    EXPECT_EQ(post("/v1/echo", R"({"model":"m"})")->status, 200);
    auto id_of = [&](const std::string& name) {
        auto answer = client().Get("/v1/models/" + name);
        return answer && answer->status == 200 ? json::parse(answer->body)["id"].get<std::string>() : "";
    };
    EXPECT_EQ(id_of("m"), "m");
    EXPECT_EQ(id_of("x/y"), "m");
    EXPECT_EQ(id_of("other"), "m");
    EXPECT_EQ(post("/v1/echo", R"({"model":"other"})")->status, 200);
    EXPECT_EQ(id_of("other"), "other");
    EXPECT_EQ(id_of("x"), "");
}

// DEV27
TEST_F(SupervisorTest, DEV27_ps_says_what_lies_on_which_device) {
    start();
    expect_alive();
    const json memory = json::parse(client().Get("/onebit/ps")->body)["engines"][0]["memory"];
    ASSERT_EQ(memory.size(), 2u);
    EXPECT_EQ(memory[1], (json{{"device", "Vulkan0"},
                               {"layers", 24},
                               {"weights_bytes", 400},
                               {"kv_cache_bytes", 80},
                               {"compute_bytes", 7}}));
}

TEST_F(SupervisorTest, the_default_model_loads_at_start) {
    first_state = EngineState::starting;
    start([](ServeConfig& config) { config.default_model = "first"; });
    engine("first");
    auto loading = client().Get("/health");
    EXPECT_EQ(loading->status, 503);
    EXPECT_EQ(json::parse(loading->body)["model"], "first");
    engine("first").state = EngineState::ready;
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    EXPECT_EQ(post("/v1/echo", "{}")->get_header_value("X-Engine"), "first");
    // it makes room as any other
    first_state = EngineState::ready;
    EXPECT_EQ(post("/v1/echo", R"({"model":"second"})")->get_header_value("X-Engine"), "second");
}

TEST_F(SupervisorTest, a_default_model_that_is_not_there_stops_no_other) {
    start([](ServeConfig& config) { config.default_model = "missing"; });
    EXPECT_EQ(json::parse(client().Get("/health")->body)["status"], "idle");
    EXPECT_EQ(post("/v1/echo", R"({"model":"other"})")->get_header_value("X-Engine"), "other");
}

TEST(ModelsAtStart, preload_wins_and_several_models_wait_for_a_request) {
    ServeConfig config;
    EXPECT_EQ(models_at_start(config), std::vector<std::string>{"builtin"});
    config.models["a"] = {};
    EXPECT_EQ(models_at_start(config), std::vector<std::string>{"builtin"});
    config.models["b"] = {};
    EXPECT_TRUE(models_at_start(config).empty());
    config.preload = {"a", "b"};
    EXPECT_EQ(models_at_start(config), config.preload);
    config.models.clear();
    EXPECT_EQ(models_at_start(config), config.preload);
    config.preload.clear();
    config.default_model.clear();
    EXPECT_TRUE(models_at_start(config).empty());
}

TEST_F(SupervisorTest, the_page_is_for_every_client) {
    start();
    auto get = [&](const std::string& accepted, const std::string& etag = "") {
        auto http = client();
        http.set_decompress(false);
        httplib::Headers headers = {{"Accept-Encoding", accepted}};
        if (!etag.empty()) headers.emplace("If-None-Match", etag);
        return http.Get("/", headers);
    };
    auto packed = get("gzip");
    ASSERT_TRUE(packed);
    if (packed->status == 404) GTEST_SKIP() << "this build has no web page";
    ASSERT_EQ(packed->status, 200);
    if (packed->get_header_value("Content-Encoding").empty()) GTEST_SKIP() << "the page is stored unpacked";
    for (const char* accepted : {"", "identity", "br, deflate", "gzip;q=0", "gzip; q=0.0, *", "*;q=0"}) {
        auto plain = get(accepted);
        ASSERT_TRUE(plain) << accepted;
        EXPECT_EQ(plain->status, 200) << accepted;
        EXPECT_FALSE(plain->has_header("Content-Encoding")) << accepted;
        EXPECT_EQ(plain->get_header_value("Vary"), "Accept-Encoding");
        EXPECT_NE(plain->body.find("<html"), std::string::npos) << accepted;
        EXPECT_TRUE(plain->get_header_value("Content-Type").starts_with("text/html"));
        const std::string etag = plain->get_header_value("ETag");
        EXPECT_NE(etag, packed->get_header_value("ETag"));
        EXPECT_EQ(get(accepted, etag)->status, 304) << accepted;
        EXPECT_EQ(get(accepted, packed->get_header_value("ETag"))->status, 200) << accepted;
    }
    for (const char* accepted : {"gzip", "br, gzip;q=0.5", "x-gzip", "*", "gzip ; q=1"}) {
        auto same = get(accepted);
        ASSERT_TRUE(same) << accepted;
        EXPECT_EQ(same->get_header_value("Content-Encoding"), "gzip") << accepted;
        EXPECT_EQ(same->body, packed->body) << accepted;
        EXPECT_EQ(get(accepted, same->get_header_value("ETag"))->status, 304) << accepted;
    }
    auto head = client().Head("/");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
}

TEST_F(SupervisorTest, a_wrong_method_on_a_known_path_is_a_405_that_names_the_right_ones) {
    start();
    expect_alive();
    const int before = engine().served;
    const std::pair<const char*, const char*> wrong[] = {
        {"POST", "/health"},      {"DELETE", "/v1/models"}, {"GET", "/v1/chat/completions"},
        {"PUT", "/v1/messages"},  {"PATCH", "/metrics"},    {"GET", "/onebit/unload"},
        {"DELETE", "/onebit/ps"}, {"HEAD", "/tokenize"},    {"DELETE", "/slots/0"},
    };
    for (const auto& [method, path] : wrong) {
        RawClient raw(port);
        ASSERT_TRUE(raw.send(std::string(method) + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" +
                             (std::string(method) == "HEAD" ? "\r\n" : "Content-Length: 2\r\n\r\n{}")));
        ASSERT_TRUE(raw.read_to_end()) << method << path;
        EXPECT_TRUE(raw.text.starts_with("HTTP/1.1 405")) << method << path << raw.text;
        EXPECT_NE(raw.text.find("\r\nAllow: "), std::string::npos) << raw.text;
    }
    EXPECT_EQ(engine().served, before);
    expect_error(client().Get("/v1/nothing"), 404);
    EXPECT_EQ(client().Options("/health")->status, 204);
}

TEST_F(SupervisorTest, load_and_unload_by_hand) {
    start();
    EXPECT_EQ(post("/onebit/load", "{\"model\":\"a\"}")->status, 202);
    ASSERT_TRUE(wait_until([&] { return client().Get("/health")->status == 200; }));
    expect_error(post("/onebit/unload", "{\"model\":\"zzz\"}"), 404);
    expect_error(post("/onebit/unload", "{}"), 400);
    expect_error(post("/onebit/nothing", "{}"), 404);
    expect_error(client().Get("/onebit/unload"), 405);
    EXPECT_EQ(post("/onebit/unload", "{\"model\":\"a\"}")->status, 200);
    EXPECT_TRUE(supervisor->fleet().engines().empty());
}

// UX06
TEST_F(SupervisorTest, UX06_reload_takes_a_good_file_and_keeps_the_old_on_a_bad_one) {
    start([](ServeConfig& config) { config.api_keys = {"old"}; });
    auto with = [&](const char* key) {
        return client().Get("/v1/models", httplib::Headers{{"X-Api-Key", key}})->status;
    };
    EXPECT_EQ(with("old"), 200);
    reloaded.api_keys = {"new"};
    auto done = client().Post("/onebit/reload", httplib::Headers{{"X-Api-Key", "old"}}, "", "application/json");
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, 200) << done->body;
    EXPECT_EQ(with("old"), 401);
    EXPECT_EQ(with("new"), 200);
    bad_reload = true;
    expect_error(client().Post("/onebit/reload", httplib::Headers{{"X-Api-Key", "new"}}, "", "application/json"), 400);
    EXPECT_EQ(with("new"), 200);
}

TEST_F(SupervisorTest, draining_lets_streams_end_and_takes_no_new_ones) {
    start();
    RawClient running(port), idle(port);
    ASSERT_TRUE(running.send(raw_post("/v1/chat/completions", R"({"stream":true,"events":3,"wait":true})")));
    ASSERT_TRUE(running.read_until("{\"n\":0}"));
    ASSERT_TRUE(idle.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ASSERT_TRUE(idle.read_until("\"ok\""));
    supervisor->drain();
    EXPECT_TRUE(idle.read_to_end());
    expect_error(post("/v1/chat/completions", "{}"), 503);
    auto health = client().Get("/health");
    EXPECT_EQ(health->status, 503);
    EXPECT_FALSE(supervisor->quiet());
    engine().open_gate();
    ASSERT_TRUE(running.read_until("[DONE]"));
    EXPECT_TRUE(wait_until([&] { return supervisor->quiet(); }));
}

TEST_F(SupervisorTest, stopping_ends_running_streams_at_once) {
    start();
    RawClient running(port);
    ASSERT_TRUE(running.send(raw_post("/v1/chat/completions", R"({"stream":true,"wait":true})")));
    ASSERT_TRUE(running.read_until("{\"n\":0}"));
    supervisor->stop();
    EXPECT_TRUE(running.read_to_end());
}

TEST_F(SupervisorTest, a_taken_port_names_its_owner) {
    start();
    HttpServer second;
    Result<uint16_t> bound = second.bind("127.0.0.1", static_cast<uint16_t>(port));
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, ErrorCode::conflict);
    EXPECT_NE(bound.error().message().find(std::to_string(port)), std::string::npos);
    EXPECT_NE(bound.error().message().find("pid " + std::to_string(::getpid())), std::string::npos)
        << bound.error().message();
    EXPECT_EQ(second.bind("no such host", 0).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace onebit::testing
