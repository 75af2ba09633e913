// If this fails, messages can break a terminal or a JSON answer, or a program ends with the wrong exit code or status.
#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;
using testing::Not;

const std::string bad = "\uFFFD";

const std::vector<ErrorCode> codes = {ErrorCode::usage,       ErrorCode::not_found, ErrorCode::invalid,
                                      ErrorCode::io,          ErrorCode::no_space,  ErrorCode::unavailable,
                                      ErrorCode::timeout,     ErrorCode::cancelled, ErrorCode::conflict,
                                      ErrorCode::unsupported, ErrorCode::internal};

TEST(Printable, KeepsValidText) {
    for (const std::string& text : {""s, "a"s, "tab\there"s, "\u00e9\u4f60\u597d"s, "\U0001F600"s, "\uFFFD"s, "\u00a0"s,
                                    "\U0010FFFF"s, "\uD7FF\uE000"s}) {
        EXPECT_EQ(printable(text), text);
    }
}

TEST(Printable, ReplacesControlCharactersBySpaces) {
    EXPECT_EQ(printable("a\nb\rc\x1b[31md\0e\x7f"s), "a b c [31md e ");
    EXPECT_EQ(printable("\u0080\u009b\u009f"), "   ") << "C1 controls act like escape sequences on some terminals";
    EXPECT_EQ(printable("\u2028\u2029"), "  ") << "line separators";
    EXPECT_EQ(printable("a\u202Etxt.exe\u2066"), "a txt.exe ") << "direction overrides";
}

TEST(Printable, ReplacesInvalidUtf8) {
    EXPECT_EQ(printable("\x80"), bad);
    EXPECT_EQ(printable("\xff\xfe"), bad + bad);
    EXPECT_EQ(printable("\xc0\xaf"), bad + bad) << "overlong '/'";
    EXPECT_EQ(printable("\xe0\x80\xaf"), bad + bad + bad) << "overlong in three bytes";
    EXPECT_EQ(printable("\xf0\x80\x80\xaf"), bad + bad + bad + bad) << "overlong in four bytes";
    EXPECT_EQ(printable("\xed\xa0\x80"), bad + bad + bad) << "surrogate";
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "above U+10FFFF";
    EXPECT_EQ(printable("\xc3"), bad) << "cut after one byte of two";
    EXPECT_EQ(printable("\xe4\xbd"), bad + bad) << "cut after two bytes of three";
    EXPECT_EQ(printable("\xf0\x9f\x98"), bad + bad + bad) << "cut after three bytes of four";
    EXPECT_EQ(printable("\xc3(\xa9"), bad + "(" + bad) << "the byte after a broken sequence is kept";
}

// printable() of what it gave changes nothing more, so its own output is valid and free of control characters.
TEST(Printable, AnyBytesGiveSoundText) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; round++) {
        std::string bytes(random() % 64, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        const std::string once = printable(bytes);
        ASSERT_EQ(printable(once), once);
        for (const char c : once) ASSERT_TRUE(static_cast<uint8_t>(c) >= 0x20 || c == '\t');
    }
}

TEST(Printable, HugeInput) {
    EXPECT_EQ(printable(std::string(16 << 20, 'x')).size(), size_t{16} << 20);
    EXPECT_EQ(printable(std::string(1 << 20, '\xff')).size(), size_t{3} << 20);
}

TEST(ErrorMessage, HasEveryPart) {
    const Error error{ErrorCode::usage, "--threads", "a number from 1 to 64", "'many'", "see 1bit serve --help"};
    EXPECT_EQ(error.message(), "--threads: expected a number from 1 to 64, found 'many'; see 1bit serve --help");
}

TEST(ErrorMessage, LeavesOutEmptyParts) {
    EXPECT_EQ((Error{ErrorCode::io, "a", "", "", ""}.message()), "a");
    EXPECT_EQ((Error{ErrorCode::io, "a", "b", "", ""}.message()), "a: expected b");
    EXPECT_EQ((Error{ErrorCode::io, "a", "", "c", ""}.message()), "a: found c");
    EXPECT_EQ((Error{ErrorCode::io, "a", "", "", "d"}.message()), "a: d");
    EXPECT_EQ((Error{ErrorCode::io, "a", "b", "", "d"}.message()), "a: expected b; d");
    EXPECT_FALSE(Error{}.message().empty());
}

TEST(ErrorMessage, IsOneLineWhateverTheParts) {
    const Error error{ErrorCode::invalid, "a\nb", "c\r\nd", "\x1b]0;title\x07\xff", "e\0f"s};
    EXPECT_THAT(error.message(), Not(testing::ContainsRegex("[\n\r\x1b\x07]")));
    EXPECT_THAT(error.message(), HasSubstr(bad));
}

TEST(ErrorCodes, ExitCodeIsTwoForUsageOnly) {
    for (const ErrorCode code : codes) EXPECT_EQ(exit_code(code), code == ErrorCode::usage ? 2 : 1);
}

TEST(ErrorCodes, EachHasAStatusAndAName) {
    const std::vector<int> statuses = {400, 404, 422, 500, 507, 503, 504, 499, 409, 501, 500};
    std::set<std::string> names;
    for (size_t i = 0; i < codes.size(); i++) {
        EXPECT_EQ(http_status(codes[i]), statuses[i]) << to_string(codes[i]);
        names.insert(to_string(codes[i]));
    }
    EXPECT_EQ(names.size(), codes.size());
    EXPECT_STREQ(to_string(ErrorCode::not_found), "not_found");
}

TEST(ErrorCodes, FromErrno) {
    for (const int value : {ENOSPC, EDQUOT, ENOMEM}) EXPECT_EQ(error_from_errno(value, "f").code, ErrorCode::no_space);
    EXPECT_EQ(error_from_errno(ENOENT, "f").code, ErrorCode::not_found);
    for (const int value : {EACCES, EIO, EROFS, 0, -1, 99999}) {
        const Error error = error_from_errno(value, "f", "do this");
        EXPECT_EQ(error.code, ErrorCode::io);
        EXPECT_EQ(error.subject, "f");
        EXPECT_EQ(error.remedy, "do this");
        EXPECT_FALSE(error.found.empty());
    }
}

Result<int> half(int number) {
    if (number % 2) return Error{ErrorCode::invalid, "number", "an even one", std::to_string(number), ""};
    return number / 2;
}

Result<void> check(int number) {
    ONEBIT_RETURN_IF_ERROR(half(number));
    return {};
}

TEST(ResultType, HoldsAValueOrAnError) {
    EXPECT_EQ(*half(4), 2);
    EXPECT_EQ(half(3).error().found, "3");
    EXPECT_TRUE(check(2).ok());
    EXPECT_EQ(check(5).error().found, "5");
}

TEST(ResultTypeDeathTest, AskedForWhatItDoesNotHoldEndsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH((void)half(3).value(), "");
    EXPECT_DEATH((void)half(4).error(), "");
    EXPECT_DEATH((void)check(2).error(), "");
}

}  // namespace
}  // namespace onebit
