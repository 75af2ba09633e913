#include "base/error.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace onebit {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Decoded {
    char32_t code_point;
    size_t length;  // bytes taken; 0 when they are not valid UTF-8
};

// One code point by Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
Decoded decode(std::string_view bytes) {
    auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    auto continues = [&](size_t i) { return i < bytes.size() && (at(i) & 0xC0) == 0x80; };
    const uint8_t first = at(0);
    if (first < 0x80) return {first, 1};
    if (first >= 0xC2 && first <= 0xDF && continues(1)) {
        return {char32_t(first & 0x1F) << 6 | char32_t(at(1) & 0x3F), 2};
    }
    if (first >= 0xE0 && first <= 0xEF && continues(1) && continues(2)) {
        const char32_t point = char32_t(first & 0x0F) << 12 | char32_t(at(1) & 0x3F) << 6 | char32_t(at(2) & 0x3F);
        if (point >= 0x800 && (point < 0xD800 || point > 0xDFFF)) return {point, 3};
    }
    if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) && continues(3)) {
        const char32_t point = char32_t(first & 0x07) << 18 | char32_t(at(1) & 0x3F) << 12 |
                               char32_t(at(2) & 0x3F) << 6 | char32_t(at(3) & 0x3F);
        if (point >= 0x10000 && point <= 0x10FFFF) return {point, 4};
    }
    return {0, 0};
}

// Line and paragraph separators break a line, and direction overrides make a terminal show another name than there is.
bool is_control(char32_t point) {
    if (point == '\t') return false;
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string printable(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    while (!bytes.empty()) {
        const auto [point, length] = decode(bytes);
        if (length == 0) {
            text += replacement;
            bytes.remove_prefix(1);
            continue;
        }
        if (is_control(point)) {
            text += ' ';
        } else {
            text += bytes.substr(0, length);
        }
        bytes.remove_prefix(length);
    }
    return text;
}

std::string Error::message() const {
    std::string text = printable(subject.empty() ? std::string_view(to_string(code)) : std::string_view(subject));
    if (!expected.empty()) text += ": expected " + printable(expected);
    if (!found.empty()) text += (expected.empty() ? ": found " : ", found ") + printable(found);
    if (!remedy.empty()) text += (expected.empty() && found.empty() ? ": " : "; ") + printable(remedy);
    return text;
}

int exit_code(ErrorCode code) { return code == ErrorCode::usage ? 2 : 1; }

int http_status(ErrorCode code) {
    switch (code) {
        case ErrorCode::usage:
            return 400;
        case ErrorCode::not_found:
            return 404;
        case ErrorCode::invalid:
            return 422;
        case ErrorCode::io:
            return 500;
        case ErrorCode::no_space:
            return 507;
        case ErrorCode::unavailable:
            return 503;
        case ErrorCode::timeout:
            return 504;
        case ErrorCode::cancelled:
            return 499;
        case ErrorCode::conflict:
            return 409;
        case ErrorCode::unsupported:
            return 501;
        case ErrorCode::internal:
            return 500;
    }
    return 500;
}

const char* to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::usage:
            return "usage";
        case ErrorCode::not_found:
            return "not_found";
        case ErrorCode::invalid:
            return "invalid";
        case ErrorCode::io:
            return "io";
        case ErrorCode::no_space:
            return "no_space";
        case ErrorCode::unavailable:
            return "unavailable";
        case ErrorCode::timeout:
            return "timeout";
        case ErrorCode::cancelled:
            return "cancelled";
        case ErrorCode::conflict:
            return "conflict";
        case ErrorCode::unsupported:
            return "unsupported";
        case ErrorCode::internal:
            return "internal";
    }
    return "internal";
}

Error error_from_errno(int errno_value, std::string subject, std::string remedy) {
    ErrorCode code = ErrorCode::io;
    if (errno_value == ENOSPC || errno_value == EDQUOT || errno_value == ENOMEM) code = ErrorCode::no_space;
    if (errno_value == ENOENT) code = ErrorCode::not_found;
    return Error{code, std::move(subject), {}, std::generic_category().message(errno_value), std::move(remedy)};
}

}  // namespace onebit
