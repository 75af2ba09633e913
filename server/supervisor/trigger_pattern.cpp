#include "server/supervisor/trigger_pattern.h"

#include <charconv>
#include <string>
#include <vector>

namespace onebit {
namespace {

constexpr size_t kMostGroups = 16;
constexpr int kMostRepetitions = 4;

std::optional<PatternFault> fault(std::string expected, std::string found, size_t at) {
    return PatternFault{std::move(expected), std::move(found) + " at byte " + std::to_string(at + 1), ""};
}

// After the class that begins at `at`.
size_t after_class(std::string_view text, size_t at) {
    for (size_t i = at + 1; i < text.size(); i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == ']')
            return i + 1;
    }
    return text.size();
}

// Numbers of {N}, {N,} and {N,M}: whether they stay small.
bool small_counts(std::string_view inside) {
    while (!inside.empty()) {
        unsigned n = 0;
        const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), n);
        if (error != std::errc() || n > 100) return false;
        inside.remove_prefix(static_cast<size_t>(end - inside.data()));
        if (inside.starts_with(',')) inside.remove_prefix(1);
    }
    return true;
}

}  // namespace

std::optional<PatternFault> trigger_pattern_fault(std::string_view pattern) {
    std::vector<bool> many = {false};  // of each open group: does it repeat something, or choose
    bool last_many = false;            // the same of the part before
    int repetitions = 0;
    for (size_t at = 0; at < pattern.size();) {
        const size_t here = at;
        switch (pattern[at]) {
            case '(':
                if (pattern.substr(at).starts_with("(?") && !pattern.substr(at).starts_with("(?:"))
                    return fault("groups written (...) or (?:...)", "another", at);
                if (many.size() > kMostGroups) return fault("at most 16 nested groups", "more", at);
                many.push_back(false);
                at += pattern.substr(at).starts_with("(?:") ? 3 : 1;
                last_many = false;
                break;
            case ')':
                if (many.size() == 1) return fault("a '(' before each ')'", "none", at);
                last_many = many.back();
                many.pop_back();
                if (last_many) many.back() = true;
                at++;
                break;
            case '|':
                many.back() = true;
                last_many = false;
                at++;
                break;
            case '\\':
                if (at + 1 < pattern.size() && pattern[at + 1] >= '1' && pattern[at + 1] <= '9')
                    return fault("no reference to a group", "one", at);
                last_many = false;
                at += 2;
                break;
            case '[':
                last_many = false;
                at = after_class(pattern, at);
                break;
            case '*':
            case '+':
            case '?':
            case '{': {
                size_t end = at + 1;
                if (pattern[at] == '{') {
                    end = pattern.find('}', at);
                    if (end == std::string_view::npos || !small_counts(pattern.substr(at + 1, end - at - 1)))
                        return fault("counts of at most 100 between '{' and '}'", "others", at);
                    end++;
                }
                const bool once = pattern[here] == '?';
                if (last_many && !once) return fault("no repetition of what repeats or has a choice", "one", here);
                if (!once && ++repetitions > kMostRepetitions) return fault("at most 4 repetitions", "more", here);
                many.back() = true;
                at = end < pattern.size() && pattern[end] == '?' ? end + 1 : end;
                last_many = true;
                break;
            }
            default:
                last_many = false;
                at++;
        }
    }
    if (many.size() > 1) return fault("a ')' for each '('", "none", pattern.size());
    return {};
}

}  // namespace onebit
