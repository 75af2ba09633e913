// What check_request() makes of a body, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "server/supervisor/request_check.h"

namespace onebit {

inline constexpr const char* kChatPath = "/v1/chat/completions";
inline constexpr const char* kResponsesPath = "/v1/responses";
inline constexpr const char* kMessagesPath = "/v1/messages";

// The body that the engine gets, as JSON; a failed test for a body that is refused or that became no JSON.
inline nlohmann::json sent(const std::string& path, const std::string& body) {
    auto checked = check_request(path, body);
    EXPECT_TRUE(checked.ok()) << path << " " << body << "\n" << (checked.ok() ? "" : checked.error().message());
    if (!checked.ok()) return {};
    auto result = nlohmann::json::parse(checked->body.value_or(body), nullptr, false);
    EXPECT_FALSE(result.is_discarded()) << *checked->body;
    return result;
}

inline void expect_sent(const std::string& path, const std::string& body, const std::string& expected) {
    EXPECT_EQ(sent(path, body), nlohmann::json::parse(expected)) << path << " " << body;
}

// The body goes on byte for byte.
inline void expect_same(const std::string& path, const std::string& body) {
    auto checked = check_request(path, body);
    ASSERT_TRUE(checked.ok()) << body << "\n" << checked.error().message();
    EXPECT_FALSE(checked->body) << body << "\n" << *checked->body;
}

// field: with what follows it; the message must begin with it.
inline void expect_refused(const std::string& path, const std::string& body, const std::string& field) {
    auto checked = check_request(path, body);
    ASSERT_FALSE(checked.ok()) << path << " " << body;
    EXPECT_EQ(checked.error().code, ErrorCode::usage);
    EXPECT_TRUE(checked.error().message().starts_with("field '" + field)) << checked.error().message();
}

}  // namespace onebit
