#include "server/supervisor/json_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace onebit {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

size_t after_space(std::string_view text, size_t at) {
    return std::min(text.find_first_not_of(kSpace, at), text.size());
}

// After the string that begins at the quote at `at`.
size_t after_string(std::string_view text, size_t at) {
    for (size_t from = at + 1;;) {
        const size_t quote = text.find('"', from);
        if (quote == std::string_view::npos) return text.size();
        size_t slashes = 0;
        while (quote - slashes > at + 1 && text[quote - slashes - 1] == '\\') slashes++;
        if (slashes % 2 == 0) return quote + 1;
        from = quote + 1;
    }
}

size_t after_value(std::string_view text, size_t at) {
    if (at >= text.size()) return text.size();
    if (text[at] == '"') return after_string(text, at);
    if (text[at] != '{' && text[at] != '[') return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
    for (size_t depth = 0; at < text.size();) {
        const char c = text[at];
        if (c == '"') {
            at = after_string(text, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[') depth++;
        if ((c == '}' || c == ']') && --depth == 0) return at;
    }
    return text.size();
}

std::string unescaped(std::string_view between_quotes) {
    if (between_quotes.find('\\') == std::string_view::npos) return std::string(between_quotes);
    const auto parsed = nlohmann::json::parse("\"" + std::string(between_quotes) + "\"", nullptr, false);
    return parsed.is_string() ? parsed.get<std::string>() : std::string();
}

JsonView::Kind kind_of(std::string_view text) {
    switch (text.empty() ? 'n' : text.front()) {
        case '{':
            return JsonView::Kind::object;
        case '[':
            return JsonView::Kind::array;
        case '"':
            return JsonView::Kind::string;
        case 't':
        case 'f':
            return JsonView::Kind::boolean;
        case 'n':
            return JsonView::Kind::null;
        default:
            return JsonView::Kind::number;
    }
}

}  // namespace

JsonView::JsonView(std::string_view text) {
    text.remove_prefix(after_space(text, 0));
    text_ = text.substr(0, text.find_last_not_of(kSpace) + 1);
    kind_ = kind_of(text_);
}

bool JsonView::is_integer() const {
    return kind_ == Kind::number && text_.find_first_of(".eE") == std::string_view::npos;
}

bool JsonView::is_float() const {
    return kind_ == Kind::number && std::fabs(number()) <= std::numeric_limits<float>::max();
}

std::string JsonView::string() const {
    return is_string() && text_.size() >= 2 ? unescaped(text_.substr(1, text_.size() - 2)) : std::string();
}

bool JsonView::is(std::string_view characters) const {
    if (!is_string() || text_.size() < 2) return false;
    const std::string_view written = text_.substr(1, text_.size() - 2);
    // no escape is longer than six characters for one byte
    if (written.size() < characters.size() || written.size() > characters.size() * 6) return false;
    return written == characters || (written.find('\\') != std::string_view::npos && string() == characters);
}

double JsonView::number() const {
    if (kind_ != Kind::number) return 0;
    double value = 0;
    const auto [end, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (fault == std::errc::result_out_of_range)
        return text_.front() == '-' ? -std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::infinity();
    return value;
}

std::optional<int64_t> JsonView::whole(int64_t least, int64_t most) const {
    if (kind_ != Kind::number) return {};
    int64_t value = 0;
    if (is_integer()) {
        if (std::from_chars(text_.data(), text_.data() + text_.size(), value).ec != std::errc()) return {};
    } else {
        const double d = number();
        // 2^63 itself is no int64
        if (std::trunc(d) != d || d < -9223372036854775808.0 || d >= 9223372036854775808.0) return {};
        value = static_cast<int64_t>(d);
    }
    return value < least || value > most ? std::nullopt : std::optional<int64_t>(value);
}

JsonView::Walk::Walk(const JsonView& owner)
    : text_(owner.kind() == Kind::object || owner.kind() == Kind::array ? owner.text() : std::string_view()),
      object_(owner.kind() == Kind::object) {}

bool JsonView::Walk::next() {
    at_ = after_space(text_, at_);
    if (at_ < text_.size() && text_[at_] == ',') at_ = after_space(text_, at_ + 1);
    if (at_ >= text_.size() || text_[at_] == '}' || text_[at_] == ']') return false;
    if (object_) {
        const size_t end = after_string(text_, at_);
        key_ = end >= at_ + 2 ? text_.substr(at_ + 1, end - at_ - 2) : std::string_view();
        at_ = after_space(text_, end);
        at_ = after_space(text_, std::min(at_ + 1, text_.size()));  // the colon
    }
    const size_t end = after_value(text_, at_);
    value_ = text_.substr(at_, end - at_);
    at_ = end;
    return true;
}

std::string JsonView::Walk::key() const { return unescaped(key_); }

size_t JsonView::count(size_t most) const {
    size_t n = 0;
    for (Walk here = walk(); n < most && here.next();) n++;
    return n;
}

std::optional<JsonView> JsonView::member(std::string_view key) const {
    std::optional<JsonView> found;
    if (kind_ != Kind::object) return found;
    for (Walk here = walk(); here.next();)
        if (here.named(key)) found = here.value();
    if (found && found->is_null()) found.reset();
    return found;
}

std::string JsonView::described() const {
    constexpr size_t kShort = 24;
    switch (kind_) {
        case Kind::object:
            return "an object";
        case Kind::array:
            return "a list";
        case Kind::string:
            return text_.size() <= 2 * kShort ? "'" + string() + "'" : "a string";
        case Kind::number:
            return text_.size() <= kShort ? std::string(text_)
                                          : "a number of " + std::to_string(text_.size()) + " digits";
        default:
            return std::string(text_);
    }
}

}  // namespace onebit
