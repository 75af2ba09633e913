// Breaks when a head that is not HTTP, or too large, gets another status than HTTP has for it, or when one that is
// right is refused.
#include "server/supervisor/http_head.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

using State = HeadReader::State;

const std::string kEnd = "Host: a\r\n\r\n";

// The status of the fault, 0 for a whole head, -1 for one that goes on.
int status_of(const std::string& bytes, std::string* message = nullptr) {
    HeadReader reader;
    const State state = reader.look(bytes);
    if (state == State::incomplete) return -1;
    if (state == State::complete) return 0;
    if (message) *message = reader.fault().message;
    EXPECT_FALSE(reader.fault().message.empty());
    return reader.fault().status;
}

TEST(HttpHead, right_ones_pass) {
    for (const char* line :
         {"GET / HTTP/1.1", "HEAD /health?x=1 HTTP/1.0", "POST /v1/chat/completions HTTP/1.1", "PUT /a HTTP/1.1",
          "PATCH /a HTTP/1.1", "DELETE /a HTTP/1.1", "OPTIONS * HTTP/1.1", "OPTIONS /a HTTP/1.1"})
        EXPECT_EQ(status_of(std::string(line) + "\r\n" + kEnd), 0) << line;
    EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0) << "HTTP/1.0 needs no Host";
    EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n" + kEnd), 0);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nEmpty:\r\n" + kEnd), 0);
}

TEST(HttpHead, methods_and_versions_have_statuses_of_their_own) {
    EXPECT_EQ(status_of("TRACE / HTTP/1.1\r\n"), 405);
    EXPECT_EQ(status_of("CONNECT a:80 HTTP/1.1\r\n"), 405);
    EXPECT_EQ(status_of("FOO / HTTP/1.1\r\n"), 501);
    EXPECT_EQ(status_of("get / HTTP/1.1\r\n"), 501);
    EXPECT_EQ(status_of(std::string(33, 'A')), 501) << "before the line ends";
    EXPECT_EQ(status_of(std::string(32, 'A')), -1);
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\n"), 505);
    EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
    EXPECT_EQ(status_of("GET / HTTP/9.9\r\n"), 505);
    for (const char* line : {"GET / http/1.1", "GET / HTTP/1.10", "GET / HTTX/1.1", "GET /", "GET", "",
                             "GET  / HTTP/1.1", "GET / a HTTP/1.1", " GET / HTTP/1.1", "GET / HTTP/1.1 ",
                             "GET a HTTP/1.1", "GET * HTTP/1.1", "SSH-2.0-OpenSSH_9.2"})
        EXPECT_EQ(status_of(std::string(line) + "\r\n"), 400) << line;
    HeadReader reader;
    ASSERT_EQ(reader.look("TRACE / HTTP/1.1\r\n"), State::fault);
    EXPECT_TRUE(reader.fault().allow);
}

TEST(HttpHead, other_protocols_are_refused_by_their_first_bytes) {
    std::string message;
    EXPECT_EQ(status_of(std::string("\x16\x03\x01\x02\0\x01", 6), &message), 400);
    EXPECT_NE(message.find("TLS"), std::string::npos) << message;
    EXPECT_EQ(status_of("\x16"), 400);
    for (const std::string& bytes : {std::string("\0", 1), std::string("\x80\x2e\x01"), std::string("\n"),
                                     std::string("G\x01"), std::string("\xff\xfe")})
        EXPECT_EQ(status_of(bytes), 400);
    EXPECT_EQ(status_of("\r"), -1);
    EXPECT_EQ(status_of("\r\n"), 400);
}

TEST(HttpHead, sizes_up_to_the_limits_and_one_more) {
    const auto line = [](size_t size) {
        const std::string rest = "GET / HTTP/1.1";
        return "GET /" + std::string(size - rest.size(), 'a') + " HTTP/1.1\r\n";
    };
    EXPECT_EQ(status_of(line(32766) + kEnd), 0);
    EXPECT_EQ(status_of(line(32767) + kEnd), 414);
    EXPECT_EQ(status_of("GET /" + std::string(1 << 20, 'a')), 414) << "before the line ends";
    const auto field = [](size_t size) { return "X: " + std::string(size - 3, 'a') + "\r\n"; };
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + field(8190) + kEnd), 0);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + field(8191) + kEnd), 431);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(1 << 20, 'a')), 431) << "before the line ends";
    const auto fields = [](int count, const std::string& one) {
        std::string text = "GET / HTTP/1.1\r\n";
        for (int i = 0; i < count; i++) text += one;
        return text;
    };
    EXPECT_EQ(status_of(fields(99, "X: a\r\n") + kEnd), 0);
    EXPECT_EQ(status_of(fields(100, "X: a\r\n") + kEnd), 431);
    EXPECT_EQ(status_of(fields(15, field(8190)) + kEnd), 0);
    EXPECT_EQ(status_of(fields(16, field(8190)) + kEnd), 431) << "128 KiB in all";
}

TEST(HttpHead, fields_that_two_parsers_could_read_differently) {
    for (const char* fields :
         {"Host: a\r\nHost: a\r\n", "Host: a\r\nhOST: b\r\n", "X: y\r\n", "Host: a\r\n folded\r\n",
          "Host: a\r\nno colon\r\n", "Host: a\r\nName : b\r\n", "Host: a\r\n: b\r\n",
          "Host: a\r\nTransfer-Encoding: gzip\r\n", "Host: a\r\nTransfer-Encoding: chunked, gzip\r\n",
          "Host: a\r\nTransfer-Encoding: chunked, chunked\r\n", "Host: a\r\nTransfer-Encoding:\r\n",
          "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"})
        EXPECT_EQ(status_of("POST / HTTP/1.1\r\n" + std::string(fields) + "\r\n"), 400) << fields;
    EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n" + kEnd), 501);
    EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n" + kEnd), 501);
}

TEST(HttpHead, a_target_with_its_host_becomes_a_path) {
    const auto rewritten = [](const std::string& bytes) {
        HeadReader reader;
        EXPECT_EQ(reader.look(bytes), State::complete) << reader.fault().message;
        return reader.rewritten(bytes).value_or("as it was");
    };
    const std::string fields = "X: 1\r\nHOST: other\r\nY: 2\r\n\r\n";
    EXPECT_EQ(rewritten("GET http://localhost:80/a/b?c=d HTTP/1.1\r\n" + fields + "next"),
              "GET /a/b?c=d HTTP/1.1\r\nHost: localhost:80\r\nX: 1\r\nY: 2\r\n\r\n");
    EXPECT_EQ(rewritten("GET HTTP://h HTTP/1.0\r\n\r\n"), "GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    EXPECT_EQ(rewritten("GET http://h?x HTTP/1.1\r\n\r\n"), "GET /?x HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(rewritten("OPTIONS http://h HTTP/1.1\r\n\r\n"), "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(rewritten("GET /a HTTP/1.1\r\n" + kEnd), "as it was");
    for (const std::string& target :
         {std::string("http://"), std::string("http:///a"), std::string("http://user@h/"), std::string("https://h/"),
          std::string("ftp://h/"), "http://" + std::string(301, 'h') + "/"})
        EXPECT_EQ(status_of("GET " + target + " HTTP/1.1\r\n" + kEnd), 400) << target;
}

// However the bytes are cut, the verdict is the same and comes with the same byte.
TEST(HttpHead, byte_by_byte_is_as_at_once) {
    for (const std::string& whole :
         {"POST /v1/echo HTTP/1.1\r\nA: b\r\n" + kEnd, "GET / HTTP/1.1\r\nX: " + std::string(9000, 'a') + "\r\n" + kEnd,
          "GET / HTTP/3.0\r\n" + kEnd, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + kEnd,
          std::string("\r\n\r\n")}) {
        HeadReader reader;
        State state = State::incomplete;
        for (size_t i = 1; i <= whole.size() && state == State::incomplete; i++)
            state = reader.look(std::string_view(whole).substr(0, i));
        const int found = state == State::complete ? 0 : state == State::fault ? reader.fault().status : -1;
        EXPECT_EQ(found, status_of(whole)) << whole.substr(0, 60);
        if (state == State::complete) {
            EXPECT_EQ(reader.length(), whole.size());
        }
    }
}

}  // namespace
}  // namespace onebit
