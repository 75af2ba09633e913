// Breaks when a scrape does not tell models apart, repeats a family's head, or is no valid text format.
#include "server/supervisor/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

namespace onebit {
namespace {

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) found++;
    return found;
}

void expect_valid(const std::string& text) {
    static const std::regex kSample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\.)*",?)*\})? [-+0-9.eEinfNa]+)re");
    std::istringstream lines(text);
    std::set<std::string> seen, heads;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# ")) {
            EXPECT_TRUE(heads.insert(line.substr(0, line.find(' ', 7))).second) << line;
            continue;
        }
        EXPECT_TRUE(std::regex_match(line, kSample)) << line;
        EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
}

const char* kEngine =
    "# HELP llamacpp:tokens_total Number of tokens.\n# TYPE llamacpp:tokens_total counter\nllamacpp:tokens_total 12\n"
    "# HELP llamacpp:busy Busy.\n# TYPE llamacpp:busy gauge\nllamacpp:busy 0.5\n"
    "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n";

// UX07
TEST(Metrics, UX07_two_models_are_told_apart) {
    std::string text = merge_engine_metrics({{"a", kEngine}, {"b", kEngine}});
    EXPECT_NE(text.find("llamacpp:tokens_total{model=\"a\"} 12"), std::string::npos) << text;
    EXPECT_NE(text.find("llamacpp:tokens_total{model=\"b\"} 12"), std::string::npos);
    EXPECT_NE(text.find("h_bucket{model=\"a\",le=\"1\"} 2"), std::string::npos);
    EXPECT_EQ(count(text, "# HELP llamacpp:tokens_total"), 1u);
    EXPECT_EQ(count(text, "# TYPE h histogram"), 1u);
    expect_valid(text);
    // all samples of a family stand together
    EXPECT_LT(text.find("tokens_total{model=\"b\"}"), text.find("llamacpp:busy"));
}

TEST(Metrics, what_is_no_sample_is_dropped) {
    std::string text = merge_engine_metrics(
        {{"a\"\\\nb", "<html>\n\n# comment\nname\n{x} 1\n# TYPE\n# HELP  \nok 1\nok2{} 2\r\n \xff 1"}});
    EXPECT_EQ(text, "ok{model=\"a\\\"\\\\\\nb\"} 1\nok2{model=\"a\\\"\\\\\\nb\"} 2\n");
    EXPECT_EQ(merge_engine_metrics({}), "");
    EXPECT_EQ(merge_engine_metrics({{"a", ""}}), "");
}

TEST(Metrics, counts_requests_by_model_and_status) {
    Metrics metrics;
    metrics.begun();
    EXPECT_EQ(metrics.in_flight(), 1u);
    metrics.done({"m", 200, 10, 20, 0.5, 0.002});
    for (int status : {503, 499, 404}) {
        metrics.begun();
        metrics.done({"m", status, 0, 0, 1, -1});
    }
    metrics.begun();
    metrics.done({"", 200, 0, 5, 0, -1});
    EXPECT_EQ(metrics.in_flight(), 0u);
    EngineView engine;
    engine.id = "m";
    engine.status.state = EngineState::ready;
    engine.status.resident_bytes = 4096;
    engine.loads = 2;
    std::string text = metrics.render({engine}, {{"m", kEngine}});
    expect_valid(text);
    for (const char* line :
         {"onebit_requests_total{model=\"m\",status=\"200\"} 1", "onebit_request_errors_total{model=\"m\"} 1",
          "onebit_requests_in_flight 0", "onebit_received_bytes_total{model=\"m\"} 10",
          "onebit_sent_bytes_total{model=\"m\"} 20", "onebit_first_byte_seconds_bucket{model=\"m\",le=\"0.005\"} 1",
          "onebit_first_byte_seconds_bucket{model=\"m\",le=\"+Inf\"} 1",
          "onebit_engine_resident_bytes{model=\"m\"} 4096", "onebit_engine_ready{model=\"m\"} 1",
          "onebit_engine_loads_total{model=\"m\"} 2", "llamacpp:busy{model=\"m\"} 0.5"})
        EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Metrics, buckets_hold_their_bounds) {
    Metrics metrics;
    for (double seconds : {0.0, 0.005, 0.0051, 60.0, 61.0}) {
        metrics.begun();
        metrics.done({"m", 200, 0, 0, 0, seconds});
    }
    std::string text = metrics.render({}, {});
    EXPECT_NE(text.find("{model=\"m\",le=\"0.005\"} 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("{model=\"m\",le=\"0.01\"} 3\n"), std::string::npos);
    EXPECT_NE(text.find("{model=\"m\",le=\"60\"} 4\n"), std::string::npos);
    EXPECT_NE(text.find("{model=\"m\",le=\"+Inf\"} 5\n"), std::string::npos);
}

TEST(Metrics, tandems_are_counted_by_member_and_phase) {
    EngineView engine;
    engine.id = "m";
    engine.tandem = {"Tandem0", {{"Vulkan0", 9, 2, 512, 7, 1, false}, {"CUDA0", 1, 1, 3, 0, 3, true}},
                     0,         1,
                     0,         64,
                     4,         1500000,
                     1,         2,
                     4096,      {{"op ADD (a\"b)", 3}}};
    engine.status.member_failures[{"CUDA0", "hang"}] = 2;
    engine.status.excluded = {{"CUDA0", "hung"}, {"CUDA0", "hung again"}};
    EngineView plain;
    plain.id = "p";
    const std::string text = Metrics().render({engine, plain}, {});
    expect_valid(text);
    for (const char* line :
         {"onebit_tandem_graphs_total{model=\"m\",member=\"Vulkan0\",phase=\"prefill\"} 2",
          "onebit_tandem_graphs_total{model=\"m\",member=\"Vulkan0\",phase=\"decode\"} 7",
          "onebit_tandem_tokens_total{model=\"m\",member=\"Vulkan0\",phase=\"prefill\"} 512",
          "onebit_tandem_tokens_total{model=\"m\",member=\"CUDA0\",phase=\"decode\"} 0",
          "onebit_tandem_errors_total{model=\"m\",member=\"CUDA0\"} 3",
          "onebit_tandem_dropped{model=\"m\",member=\"CUDA0\"} 1",
          "onebit_tandem_fallbacks_total{model=\"m\",reason=\"op ADD (a\\\"b)\"} 3",
          "onebit_tandem_handoffs_total{model=\"m\"} 4", "onebit_tandem_handoff_seconds_total{model=\"m\"} 1.5",
          "onebit_tandem_repeats_total{model=\"m\"} 1", "onebit_tandem_refused_graphs_total{model=\"m\"} 2",
          "onebit_tandem_shared_bytes{model=\"m\"} 4096",
          "onebit_engine_member_failures_total{model=\"m\",member=\"CUDA0\",kind=\"hang\"} 2",
          "onebit_engine_member_excluded{model=\"m\",member=\"CUDA0\"} 1"})
        EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
    EXPECT_EQ(text.find("onebit_tandem_handoffs_total{model=\"p\"}"), std::string::npos);
}

}  // namespace
}  // namespace onebit
