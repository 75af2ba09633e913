// Breaks when a stranger's web page, a rebound host name or a wrong key gets through, or a rightful caller does not.
#include "server/supervisor/access.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

AccessRequest from(std::string_view origin, std::string_view host = "127.0.0.1:8080") {
    return {"POST", "/v1/chat/completions", host, origin, {}, {}, false};
}

AccessRules rules(std::vector<std::string> keys = {}, std::vector<std::string> origins = {},
                  std::string host = "127.0.0.1") {
    ServeConfig config;
    config.host = std::move(host);
    config.api_keys = std::move(keys);
    config.cors_origins = std::move(origins);
    return AccessRules(config);
}

// API38
TEST(Access, API38_foreign_origins_are_refused_without_reflection) {
    AccessRules closed = rules();
    for (std::string_view origin :
         {"https://evil.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example", "null", "file://",
          "http://", "http://localhost@evil.example", "http://evil.example/localhost", "chrome-extension://localhost",
          "http://[::1].evil.example", "http://127.0.0.1:80:80.evil"}) {
        AccessDecision decision = closed.check(from(origin));
        EXPECT_EQ(decision.status, 403) << origin;
        EXPECT_EQ(decision.allow_origin, "") << origin;
        EXPECT_FALSE(decision.message.empty());
    }
}

TEST(Access, API38_loopback_origins_are_allowed) {
    for (std::string_view origin :
         {"http://localhost", "http://localhost:5173", "https://127.0.0.1:9", "http://[::1]:8080", "http://LOCALHOST:1",
          "http://127.8.8.8", "http://app.localhost:3000"}) {
        AccessDecision decision = rules().check(from(origin));
        EXPECT_EQ(decision.status, 200) << origin;
        EXPECT_EQ(decision.allow_origin, origin);
    }
}

TEST(Access, API38_configured_origins_only) {
    AccessRules some = rules({}, {"https://good.example", "https://other.example:444"});
    EXPECT_EQ(some.check(from("https://good.example")).status, 200);
    EXPECT_EQ(some.check(from("https://Good.example")).status, 200);
    EXPECT_EQ(some.check(from("https://other.example:444")).status, 200);
    EXPECT_EQ(some.check(from("https://other.example")).status, 403);
    EXPECT_EQ(some.check(from("http://good.example")).status, 403);
    AccessRules any = rules({}, {"*"});
    EXPECT_EQ(any.check(from("https://evil.example")).allow_origin, "*");
}

TEST(Access, preflights_need_no_key_but_a_right_origin) {
    AccessRules keyed = rules({"secret"}, {"https://good.example"});
    AccessRequest request = from("https://good.example");
    request.method = "OPTIONS";
    EXPECT_EQ(keyed.check(request).status, 204);
    request.origin = "https://evil.example";
    EXPECT_EQ(keyed.check(request).status, 403);
}

TEST(Access, rebound_host_names_are_refused_on_loopback) {
    AccessRules closed = rules({}, {"https://page.example:8443"});
    for (std::string_view host :
         {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.168.1.5:8080", "[fe80::1]"})
        EXPECT_EQ(closed.check(from("", host)).status, 403) << host;
    for (std::string_view host : {"localhost", "localhost:8080", "127.0.0.1", "127.1.2.3:1", "[::1]:8080", "::1",
                                  "LocalHost:1", "localhost.", "page.example", ""})
        EXPECT_EQ(closed.check(from("", host)).status, 200) << host;
    EXPECT_EQ(rules({}, {}, "::1").check(from("", "evil.example")).status, 403);
}

TEST(Access, a_public_address_serves_its_own_page_but_not_a_rebound_one) {
    AccessRules open = rules({}, {}, "0.0.0.0");
    EXPECT_EQ(open.check(from("", "any.name.example")).status, 200);
    EXPECT_EQ(open.check(from("http://192.168.1.5:8080", "192.168.1.5:8080")).status, 200);
    EXPECT_EQ(open.check(from("http://192.168.1.5:8081", "192.168.1.5:8080")).status, 403);
    EXPECT_EQ(open.check(from("http://evil.example:8080", "evil.example:8080")).status, 403);
    AccessRequest keyed = from("http://box.example:8080", "box.example:8080");
    keyed.authorization = "Bearer k";
    EXPECT_EQ(rules({"k"}, {}, "0.0.0.0").check(keyed).status, 200);
}

TEST(Access, keys) {
    AccessRules keyed = rules({"right-key", "other"});
    AccessRequest request = from("");
    EXPECT_EQ(keyed.check(request).status, 401);
    for (std::string_view good : {"Bearer right-key", "bearer other", "Bearer   right-key  "}) {
        request.authorization = good;
        EXPECT_EQ(keyed.check(request).status, 200) << good;
    }
    for (std::string_view bad : {"right-key", "Bearer", "Bearer ", "Bearer right-ke", "Bearer right-keyx",
                                 "Basic right-key", "Bearer RIGHT-KEY", "Bearer right-key other"}) {
        request.authorization = bad;
        AccessDecision decision = keyed.check(request);
        EXPECT_EQ(decision.status, 401) << bad;
        EXPECT_EQ(decision.message.find("right-key"), std::string::npos);
    }
    request.authorization = {};
    request.api_key_header = "other";
    EXPECT_EQ(keyed.check(request).status, 200);
    request.api_key_header = "";
    EXPECT_EQ(keyed.check(request).status, 401);
    request.open_path = true;
    EXPECT_EQ(keyed.check(request).status, 200);
    EXPECT_EQ(rules().check(from("")).status, 200);
}

// API02
TEST(Access, API02_refusals_never_repeat_raw_bytes) {
    AccessDecision decision = rules().check(from("http://\xff\xfe\x01.example"));
    EXPECT_EQ(decision.status, 403);
    for (unsigned char c : decision.message) EXPECT_TRUE(c >= 0x20 && c != 0xff && c != 0xfe);
    EXPECT_LT(rules().check(from("", std::string(100000, 'a'))).message.size(), 400u);
}

TEST(Access, parts_of_authorities) {
    EXPECT_EQ(host_without_port("a:1"), "a");
    EXPECT_EQ(host_without_port("[::1]:1"), "::1");
    EXPECT_EQ(host_without_port("[::1"), "");
    EXPECT_EQ(host_without_port("::1"), "::1");
    EXPECT_EQ(host_without_port(""), "");
    EXPECT_EQ(origin_authority("http://a:1"), "a:1");
    EXPECT_EQ(origin_authority("null"), "");
    EXPECT_EQ(origin_authority("http://a/b"), "");
    EXPECT_FALSE(is_loopback_name("128.0.0.1"));
    EXPECT_FALSE(is_loopback_name(""));
    EXPECT_TRUE(is_loopback_name("[::1]"));
    EXPECT_TRUE(is_loopback_name("::ffff:127.0.0.1"));
}

}  // namespace
}  // namespace onebit
