// If this fails, an argument or a variable of the user's can open a second door to the engine past the supervisor.
#include "engine/engine_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace onebit {
namespace {

using ::testing::HasSubstr;

size_t position(const std::vector<std::string>& words, const std::string& word) {
    return static_cast<size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

TEST(EngineArguments, UsersComeAfterOursAndBeforeTheSocket) {
    auto words = engine_arguments("/run/x.sock", {"-m", "a.gguf", "--sse-ping-interval", "60"});
    ASSERT_TRUE(words.ok());
    EXPECT_LT(position(*words, "--metrics"), position(*words, "-m"));
    EXPECT_LT(position(*words, "5"), position(*words, "60")) << "llama.cpp takes the last";
    ASSERT_GE(words->size(), 2u);
    EXPECT_EQ((*words)[words->size() - 2], "--host");
    EXPECT_EQ(words->back(), "/run/x.sock");
    EXPECT_EQ(std::count(words->begin(), words->end(), "--props"), 0) << "a write endpoint";
}

TEST(EngineArguments, API38_CorsAllowsNoOrigin) {
    auto words = engine_arguments("/run/x.sock", {"-m", "a.gguf"});
    ASSERT_TRUE(words.ok());
    const size_t at = position(*words, "--cors-origins");
    ASSERT_LT(at + 1, words->size());
    EXPECT_EQ((*words)[at + 1], "");
}

TEST(EngineArguments, WhatOpensADoorIsRefusedByName) {
    for (const std::string flag : {"--host", "--port", "--api-key", "--api-key-file", "--ssl-key-file",
                                   "--ssl-cert-file", "--api-prefix", "--cors-origins", "--models-dir", "--port=1"}) {
        auto words = engine_arguments("/run/x.sock", {"-m", "a.gguf", flag, "x"});
        ASSERT_FALSE(words.ok()) << flag;
        EXPECT_EQ(words.error().code, ErrorCode::usage);
        EXPECT_THAT(words.error().message(), HasSubstr(flag.substr(0, flag.find('='))));
    }
}

TEST(EngineArguments, WithoutAModelTheRouterWouldStart) {
    EXPECT_EQ(engine_arguments("/run/x.sock", {}).error().code, ErrorCode::usage);
    EXPECT_TRUE(engine_arguments("/run/x.sock", {"--model", "a.gguf"}).ok());
}

TEST(EngineArguments, SocketPathsThatLlamaCppWouldMisreadAreRefused) {
    EXPECT_FALSE(engine_arguments("/run/x", {"-m", "a"}).ok());
    EXPECT_FALSE(engine_arguments("/run/a,b.sock", {"-m", "a"}).ok());
    EXPECT_FALSE(engine_arguments("/run/\"a.sock", {"-m", "a"}).ok());
    EXPECT_FALSE(engine_arguments("", {"-m", "a"}).ok());
}

TEST(EngineEnvironment, VariablesThatWouldDoTheSameAreGone) {
    ::setenv("LLAMA_ARG_PORT", "1", 1);
    ::setenv("LLAMA_API_KEY", "k", 1);
    ::setenv("LLAMA_SERVER_ROUTER_PORT", "1", 1);
    ::setenv("LLAMA_ARG_CTX_SIZE", "512", 1);
    clean_engine_environment();
    EXPECT_EQ(std::getenv("LLAMA_ARG_PORT"), nullptr);
    EXPECT_EQ(std::getenv("LLAMA_API_KEY"), nullptr);
    EXPECT_EQ(std::getenv("LLAMA_SERVER_ROUTER_PORT"), nullptr);
    EXPECT_STREQ(std::getenv("LLAMA_ARG_CTX_SIZE"), "512") << "an ordinary setting stays";
}

}  // namespace
}  // namespace onebit
