#include "server/supervisor/request_body.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace onebit {
namespace {

constexpr size_t kMaxDepth = 256;
constexpr size_t kMaxName = 1024;
// llama.cpp keeps objects in the order of their keys' arrival and compares each new key with all before it
constexpr uint64_t kMaxKeyComparisons = 50'000'000;  // one object of 10,000 keys

// A pushdown scanner: the stack holds only '{' or '[', and how many keys the object has.
class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    Result<RequestFacts> run() {
        skip_space();
        if (at_ == text_.size()) return fault("a JSON value");
        facts_.object = text_[at_] == '{';
        if (!value()) return std::move(*error_);
        skip_space();
        if (at_ != text_.size()) return fault("the end of the body");
        return std::move(facts_);
    }

private:
    Error fault(std::string_view expected) const {
        size_t line = 1, column = 1;
        for (size_t i = 0; i < at_ && i < text_.size(); i++) {
            if (text_[i] == '\n') {
                line++;
                column = 1;
            } else {
                column++;
            }
        }
        char found[64];
        if (at_ >= text_.size()) {
            std::snprintf(found, sizeof(found), "the end of the body");
        } else {
            unsigned char c = static_cast<unsigned char>(text_[at_]);
            if (c > 0x20 && c < 0x7f)
                std::snprintf(found, sizeof(found), "'%c'", c);
            else
                std::snprintf(found, sizeof(found), "byte 0x%02X", c);
        }
        Error error;
        error.code = ErrorCode::usage;
        error.subject = "request body, line " + std::to_string(line) + ", column " + std::to_string(column) +
                        " (byte " + std::to_string(at_) + ")";
        error.expected = expected;
        error.found = found;
        return error;
    }
    bool fail(std::string_view expected) {
        if (!error_) error_ = fault(expected);
        return false;
    }

    void skip_space() {
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
            at_++;
        }
    }

    // Everything but the nesting: iterative, so that no depth of the input can exhaust the stack.
    bool value() {
        struct Open {
            char bracket;
            uint64_t keys;
        };
        Open stack[kMaxDepth];
        size_t depth = 0;
        const auto one_more_key = [&] {
            comparisons_ += stack[depth - 1].keys++;
            if (comparisons_ > kMaxKeyComparisons) return fail("objects of at most 10,000 keys");
            return key(depth);
        };
        for (;;) {
            skip_space();
            if (at_ == text_.size()) return fail("a JSON value");
            bool opened = false;
            char c = text_[at_];
            if (c == '{' || c == '[') {
                if (depth == kMaxDepth) return fail("at most 256 nested arrays and objects");
                stack[depth++] = {c, 0};
                at_++;
                skip_space();
                char close = c == '{' ? '}' : ']';
                if (at_ < text_.size() && text_[at_] == close) {
                    at_++;
                    depth--;
                } else {
                    opened = true;
                    if (c == '{' && !one_more_key()) return false;
                }
            } else if (!scalar(depth)) {
                return false;
            }
            if (opened) continue;
            // after a value: close what ends here, or go to the next member
            for (;;) {
                if (depth == 0) return true;
                skip_space();
                char top = stack[depth - 1].bracket;
                if (at_ == text_.size()) return fail(top == '{' ? "',' or '}'" : "',' or ']'");
                char next = text_[at_];
                if (next == ',') {
                    at_++;
                    if (top == '{') {
                        skip_space();
                        if (!one_more_key()) return false;
                    }
                    break;
                }
                if (next != (top == '{' ? '}' : ']')) return fail(top == '{' ? "',' or '}'" : "',' or ']'");
                at_++;
                depth--;
            }
        }
    }

    bool key(size_t depth) {
        if (at_ == text_.size() || text_[at_] != '"') return fail("'\"' and a key");
        std::string name;
        const bool keep = depth == 1 && facts_.object;
        if (!string(keep ? &name : nullptr)) return false;
        skip_space();
        if (at_ == text_.size() || text_[at_] != ':') return fail("':'");
        at_++;
        wanted_ = Wanted::none;
        if (keep && name == "model") {
            wanted_ = Wanted::model;
            facts_.model.clear();
        } else if (keep && name == "stream") {
            wanted_ = Wanted::stream;
            facts_.stream = false;
        }
        return true;
    }

    bool scalar(size_t depth) {
        Wanted wanted = depth == 1 ? wanted_ : Wanted::none;
        wanted_ = Wanted::none;
        char c = text_[at_];
        if (c == '"') return string(wanted == Wanted::model ? &facts_.model : nullptr);
        if (c == 't') {
            if (wanted == Wanted::stream) facts_.stream = true;
            return word("true");
        }
        if (c == 'f') return word("false");
        if (c == 'n') return word("null");
        if (c == '-' || (c >= '0' && c <= '9')) return number();
        return fail("a JSON value");
    }

    bool word(std::string_view expected) {
        for (char c : expected) {
            if (at_ == text_.size() || text_[at_] != c) return fail(expected);
            at_++;
        }
        return true;
    }

    bool digits() {
        size_t start = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') at_++;
        return at_ > start || fail("a digit");
    }

    bool number() {
        const size_t start = at_;
        if (text_[at_] == '-') at_++;
        if (at_ < text_.size() && text_[at_] == '0')
            at_++;
        else if (!digits())
            return false;
        if (at_ < text_.size() && text_[at_] == '.') {
            at_++;
            if (!digits()) return false;
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            at_++;
            if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) at_++;
            if (!digits()) return false;
        }
        return finite(start);
    }

    // The engine ends the parse at a number that no double can hold.
    bool finite(size_t start) {
        constexpr size_t kSmall = 4;  // with up to two digits of an exponent: a number so short is in range
        if (at_ - start <= kSmall) return true;
        double value = 0;
        const auto [end, error] = std::from_chars(text_.data() + start, text_.data() + at_, value);
        // out of range is also what is too near to 0, which is taken as 0
        if (error != std::errc::result_out_of_range || near_zero(text_.substr(start, at_ - start))) return true;
        const size_t digits = at_ - start;
        at_ = start;
        Error error_here = fault("a number of at most 1.7e308");
        error_here.found = "a larger one, " + std::to_string(digits) + " characters long";
        error_ = std::move(error_here);
        return false;
    }

    // Of a number out of range: whether its first digit that is not 0 stands far below the point.
    static bool near_zero(std::string_view number) {
        const size_t exponent = number.find_first_of("eE");
        const std::string_view mantissa = number.substr(0, exponent);
        const size_t point = std::min(mantissa.find('.'), mantissa.size());
        const size_t first = mantissa.find_first_of("123456789");
        if (first == std::string_view::npos) return true;
        const double place = static_cast<double>(point) - static_cast<double>(first);
        int64_t power = 0;
        if (exponent != std::string_view::npos) {
            const bool plus = number[exponent + 1] == '+';
            const char* const begin = number.data() + exponent + 1 + (plus ? 1 : 0);
            if (std::from_chars(begin, number.data() + number.size(), power).ec != std::errc())
                return number[exponent + 1] == '-';
        }
        return place + static_cast<double>(power) < 0;
    }

    static int hex(char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        if (c >= 'A' && c <= 'F') return c - 'A' + 10;
        return -1;
    }

    bool four_hex(uint32_t& code) {
        code = 0;
        for (int i = 0; i < 4; i++, at_++) {
            int digit = at_ < text_.size() ? hex(text_[at_]) : -1;
            if (digit < 0) return fail("four hexadecimal digits");
            code = code * 16 + static_cast<uint32_t>(digit);
        }
        return true;
    }

    static void append_utf8(std::string& out, uint32_t code) {
        if (code < 0x80) {
            out += static_cast<char>(code);
        } else if (code < 0x800) {
            out += static_cast<char>(0xC0 | (code >> 6));
            out += static_cast<char>(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            out += static_cast<char>(0xE0 | (code >> 12));
            out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
            out += static_cast<char>(0x80 | (code & 0x3F));
        } else {
            out += static_cast<char>(0xF0 | (code >> 18));
            out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
            out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
            out += static_cast<char>(0x80 | (code & 0x3F));
        }
    }

    bool escape(std::string* out) {
        at_++;
        if (at_ == text_.size()) return fail("an escape");
        char c = text_[at_];
        constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
        if (size_t i = kFrom.find(c); i != std::string_view::npos) {
            at_++;
            if (out) *out += kTo[i];
            return true;
        }
        if (c != 'u') return fail("one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
        at_++;
        uint32_t code = 0;
        if (!four_hex(code)) return false;
        if (code >= 0xDC00 && code <= 0xDFFF) return fail("a high surrogate before a low one");
        if (code >= 0xD800 && code <= 0xDBFF) {
            if (at_ + 1 >= text_.size() || text_[at_] != '\\' || text_[at_ + 1] != 'u')
                return fail("a low surrogate after a high one");
            at_ += 2;
            uint32_t low = 0;
            if (!four_hex(low)) return false;
            if (low < 0xDC00 || low > 0xDFFF) return fail("a low surrogate after a high one");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        if (out) append_utf8(*out, code);
        return true;
    }

    // One multi-byte character; RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
    bool multibyte() {
        auto byte = [&](size_t i) -> unsigned {
            return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0u;
        };
        unsigned lead = byte(0);
        size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : (lead & 0xF0) == 0xE0        ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
        if (!length) return fail("valid UTF-8");
        for (size_t i = 1; i < length; i++)
            if ((byte(i) & 0xC0) != 0x80) return fail("valid UTF-8");
        unsigned second = byte(1);
        bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                   (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
        if (bad) return fail("valid UTF-8");
        at_ += length;
        return true;
    }

    bool string(std::string* out) {
        at_++;
        for (;;) {
            size_t start = at_;
            while (at_ < text_.size()) {
                unsigned char c = static_cast<unsigned char>(text_[at_]);
                if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80) break;
                at_++;
            }
            if (out && out->size() < kMaxName) out->append(text_.substr(start, std::min(at_ - start, kMaxName)));
            if (at_ == text_.size()) return fail("'\"' at the end of a string");
            unsigned char c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') {
                at_++;
                return true;
            }
            if (c == '\\') {
                if (!escape(out && out->size() < kMaxName ? out : nullptr)) return false;
            } else if (c < 0x20) {
                return fail("control characters in a string written as escapes");
            } else {
                size_t before = at_;
                if (!multibyte()) return false;
                if (out && out->size() < kMaxName) out->append(text_.substr(before, at_ - before));
            }
        }
    }

    enum class Wanted { none, model, stream };

    std::string_view text_;
    size_t at_ = 0;
    uint64_t comparisons_ = 0;
    Wanted wanted_ = Wanted::none;
    RequestFacts facts_;
    std::optional<Error> error_;
};

}  // namespace

Result<RequestFacts> scan_request_body(std::string_view body) { return Scanner(body).run(); }

}  // namespace onebit
