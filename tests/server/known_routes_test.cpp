// Breaks when a path of llama.cpp's server is refused a method that it has, or a wrong method is answered as a wrong
// path.
#include "server/supervisor/known_routes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

namespace onebit {
namespace {

TEST(KnownRoutes, methods_are_told_apart) {
    EXPECT_TRUE(has_method("GET, HEAD", "GET"));
    EXPECT_TRUE(has_method("GET, HEAD", "HEAD"));
    for (const char* method : {"", "EAD", "HEA", "POST", ","}) EXPECT_FALSE(has_method("GET, HEAD", method)) << method;
    EXPECT_EQ(methods_of("/slots/0"), "POST");
    for (const char* path : {"/v1/models/a", "/models/a", "/v1/models/org/repo:Q4_K_M", "/v1/models//"})
        EXPECT_EQ(methods_of(path), "GET, HEAD") << path;
    for (const char* path : {"", "/nothing", "/slots/", "/slots/0/1", "/health/", "/onebit/nothing", "/v1/chat",
                             "/v1/models/", "/models/", "/v1/modelsa"})
        EXPECT_EQ(methods_of(path), "") << path;
}

TEST(KnownRoutes, below_an_api_nothing_is_but_what_is_known) {
    for (const char* path :
         {"/v1/responses/x/cancel", "/v1/responses/", "/v1/messages/batches", "/onebit/x", "/v1/chat/completions/id"})
        EXPECT_TRUE(is_surely_unknown(path)) << path;
    for (const char* path : {"/v1/responses", "/v1/responses/input_tokens", "/v1/messages/count_tokens", "/v1/x", "",
                             "/v1/chat/completions/control", "/onebit/ps"})
        EXPECT_FALSE(is_surely_unknown(path)) << path;
}

// The pinned llama.cpp is asked, so that a new pin cannot bring a route that the table shuts.
TEST(KnownRoutes, every_path_of_llama_cpp_keeps_its_methods) {
    std::ifstream file(LLAMA_SERVER_SOURCE);
    ASSERT_TRUE(file) << LLAMA_SERVER_SOURCE;
    const std::regex route(R"re(ctx_http\.(get|post|del) *\("(/[^"]*)")re");
    size_t found = 0;
    // its router's own, which this program does not run
    const std::string router = "router";
    for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, route) || line.find(router) != std::string::npos) continue;
        const std::string method = match[1] == "get" ? "GET" : match[1] == "post" ? "POST" : "DELETE";
        const std::string path = std::regex_replace(match[2].str(), std::regex(":[a-z_]+"), "0");
        EXPECT_TRUE(has_method(methods_of(path), method)) << method << " " << path;
        found++;
    }
    EXPECT_GE(found, 40u);
}

}  // namespace
}  // namespace onebit
