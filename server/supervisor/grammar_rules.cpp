#include "server/supervisor/grammar_rules.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>

namespace onebit {
namespace {

constexpr size_t kMostNested = 256;
constexpr size_t kMostParts = 200'000;
constexpr size_t kMostRules = 20'000;
constexpr uint64_t kMostRepetitions = 2000;    // the engine's own
constexpr int32_t kMostToken = (1 << 20) - 1;  // above the vocabulary of any model
constexpr uint64_t kNoMost = std::numeric_limits<uint64_t>::max();

using Rule = std::vector<GrammarPart>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c); }

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    Result<GrammarRules> run() {
        if (text_.starts_with("%llguidance")) return fault("a grammar in GBNF", "one for llguidance");
        at_ = std::min(text_.find('\0'), text_.size());
        if (at_ < text_.size()) return fault("text without the character U+0000", "one with");
        at_ = 0;
        space(true);
        while (at_ < text_.size())
            if (!rule()) return std::move(*error_);
        const auto root = names_.find("root");
        const auto missing = [this](uint32_t id) { return id >= grammar_.rules.size() || grammar_.rules[id].empty(); };
        if (root == names_.end() || missing(root->second)) return fault("a rule named root", "none");
        std::vector<bool> named(names_.size());
        for (const Rule& rule : grammar_.rules)
            for (const GrammarPart& part : rule)
                if (part.type == GrammarPart::rule) named[part.value] = true;
        // a name that a repetition of 0 times took out again may lack its rule, unless a later one has its own
        for (const auto& [name, id] : names_)
            if (missing(id) && (named[id] || id < grammar_.rules.size()))
                return fault("a rule for each name", "none for '" + name.substr(0, 60) + "'");
        grammar_.root = root->second;
        return std::move(grammar_);
    }

private:
    Error fault(std::string expected, std::string found) const {
        if (at_ < text_.size() || found.empty()) {
            const size_t line = 1 + static_cast<size_t>(std::count(text_.begin(), text_.begin() + at_, '\n'));
            found += (found.empty() ? "" : " ") + ("at byte " + std::to_string(at_)) + ", line " + std::to_string(line);
        }
        return {ErrorCode::usage, "grammar", std::move(expected), std::move(found), ""};
    }
    bool fail(std::string expected, std::string found = {}) {
        if (!error_) error_ = fault(std::move(expected), std::move(found));
        return false;
    }
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    void space(bool newlines) {
        for (;;) {
            const char c = peek();
            if (c == '#')
                at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
            else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n')))
                at_++;
            else
                return;
        }
    }

    std::string_view word() {
        const size_t begin = at_;
        while (is_word(peek())) at_++;
        return text_.substr(begin, at_ - begin);
    }

    uint32_t id_of(std::string_view name) {
        return names_.emplace(std::string(name), static_cast<uint32_t>(names_.size())).first->second;
    }
    // A rule of our own: no name that a grammar can have holds '_'.
    uint32_t new_id() { return id_of("_" + std::to_string(names_.size())); }

    bool add(uint32_t id, Rule rule) {
        if (grammar_.rules.size() <= id) grammar_.rules.resize(id + 1);
        if (grammar_.rules.size() > kMostRules) return fail("at most 20000 rules, groups and repetitions", "more");
        grammar_.rules[id] = std::move(rule);
        return true;
    }
    // Before each growth, so that no count in the text can take the memory.
    bool room(uint64_t parts) {
        parts_ += parts;
        return parts_ <= kMostParts || fail("at most 200000 parts, with repetitions written out", "more");
    }

    bool rule() {
        const std::string_view name = word();
        if (name.empty()) return fail("the name of a rule");
        space(false);
        const uint32_t id = id_of(name);
        if (text_.substr(at_, 3) != "::=") return fail("'::='");
        at_ += 3;
        space(true);
        if (!alternatives(id, false)) return false;
        if (peek() == '\r') {
            at_ += peek(1) == '\n' ? 2 : 1;
        } else if (peek() == '\n') {
            at_++;
        } else if (at_ < text_.size()) {
            return fail("a new line or the end");
        }
        space(true);
        return true;
    }

    bool alternatives(uint32_t id, bool nested) {
        Rule rule;
        if (!sequence(rule, nested)) return false;
        while (peek() == '|') {
            rule.push_back({GrammarPart::alternative, 0});
            at_++;
            space(true);
            if (!sequence(rule, nested)) return false;
        }
        rule.push_back({GrammarPart::end, 0});
        return add(id, std::move(rule));
    }

    // rules: how many the repeated part stands for already
    struct Last {
        size_t start = 0;
        uint64_t rules = 1;
    };

    bool sequence(Rule& rule, bool nested) {
        Last last{rule.size(), 1};
        while (at_ < text_.size()) {
            const char c = peek();
            const bool repeats = c == '*' || c == '+' || c == '?' || c == '{';
            if (repeats) {
                if (!repetition(rule, last, nested)) return false;
                continue;
            }
            const size_t start = rule.size();
            uint64_t rules = 1;
            if (c == '"') {
                if (!literal(rule)) return false;
            } else if (c == '[') {
                if (!set(rule)) return false;
            } else if (c == '<' || c == '!') {
                if (!token(rule)) return false;
            } else if (is_word(c)) {
                rule.push_back({GrammarPart::rule, id_of(word())});
            } else if (c == '(') {
                const size_t before = names_.size();
                if (!group(rule)) return false;
                rules = std::max<uint64_t>(1, names_.size() - before);
            } else if (c == '.') {
                at_++;
                CharacterSet any;
                any.any = true;
                add_set(rule, std::move(any));
            } else {
                break;
            }
            last = {start, rules};
            if (!room(rule.size() - start)) return false;
            space(nested);
        }
        return true;
    }

    bool literal(Rule& rule) {
        at_++;
        while (peek() != '"') {
            uint32_t character = 0;
            if (!one_character(character)) return false;
            rule.push_back({GrammarPart::character, character});
        }
        at_++;
        return true;
    }

    void add_set(Rule& rule, CharacterSet set) {
        rule.push_back({GrammarPart::characters, static_cast<uint32_t>(grammar_.sets.size())});
        grammar_.sets.push_back(std::move(set));
    }

    bool set(Rule& rule) {
        at_++;
        CharacterSet set;
        if (peek() == '^') {
            set.inverse = true;
            at_++;
        }
        while (peek() != ']') {
            uint32_t from = 0;
            if (!one_character(from)) return false;
            uint32_t to = from;
            if (peek() == '-' && peek(1) != ']') {
                at_++;
                if (!one_character(to)) return false;
            }
            set.ranges.emplace_back(from, to);
        }
        at_++;
        if (!room(set.ranges.size())) return false;
        if (!set.ranges.empty()) add_set(rule, std::move(set));  // an empty one is nothing at all
        return true;
    }

    bool token(Rule& rule) {
        if (peek() == '!') at_++;
        if (peek() != '<') return fail("'<' and a token");
        const size_t end = text_.find('>', at_);
        if (end == std::string_view::npos) return fail("'>' after a token", "none");
        const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
        if (name.starts_with('[')) {
            int32_t id = 0;
            const char* const last = name.data() + name.size();
            const auto [stop, error] = std::from_chars(name.data() + 1, last, id);
            if (error != std::errc() || id < 0 || id > kMostToken || stop + 1 != last || *stop != ']' ||
                !is_digit(name[1]))
                return fail("<[N]> with a token from 0 to 1048575");
        }
        at_ = end + 1;
        rule.push_back({GrammarPart::token, 0});
        return true;
    }

    bool group(Rule& rule) {
        if (nested_ == kMostNested) return fail("at most 256 nested groups", "more");
        nested_++;
        at_++;
        space(true);
        const uint32_t id = new_id();
        if (!alternatives(id, true)) return false;
        nested_--;
        if (peek() != ')') return fail("')'");
        at_++;
        rule.push_back({GrammarPart::rule, id});
        return true;
    }

    bool count(uint64_t& value) {
        const size_t begin = at_;
        while (is_digit(peek())) at_++;
        if (std::from_chars(text_.data() + begin, text_.data() + at_, value).ec == std::errc() && at_ > begin)
            return true;
        at_ = begin;
        return fail("a count");
    }

    bool repetition(Rule& rule, Last& last, bool nested) {
        uint64_t least = 0, most = kNoMost;
        const char c = peek();
        at_++;
        space(nested);
        if (c == '+') least = 1;
        if (c == '?') most = 1;
        if (c == '{') {
            if (!count(least)) return false;
            space(nested);
            most = least;
            if (peek() == ',') {
                at_++;
                space(nested);
                most = kNoMost;
                if (is_digit(peek()) && !count(most)) return false;
                space(nested);
            }
            if (peek() != '}') return fail("'}'");
            if (most < least) return fail("{N,M} with M not below N", "one");
            at_++;
            space(nested);
            if (least > kMostRepetitions) return fail("at most 2000 repetitions", "more");
            if (most > kMostRepetitions) most = kNoMost;
        }
        if (last.start == rule.size()) return fail("something to repeat", "nothing before the repetition");
        return repeat(rule, last, least, most);
    }

    // S{N,M} becomes N times S and M-N rules, each of which is S and the next one, or nothing; S{N,} becomes N times S
    // and one rule that is S and itself, or nothing.
    bool repeat(Rule& rule, Last& last, uint64_t least, uint64_t most) {
        const bool endless = most == kNoMost;
        const uint64_t rules = !endless && most > 0 ? most : std::max<uint64_t>(1, least);
        if (last.rules * rules > kMostRepetitions) return fail("at most 2000 rules that a repetition makes", "more");
        const Rule part(rule.begin() + static_cast<std::ptrdiff_t>(last.start), rule.end());
        const uint64_t optional = endless ? 1 : most - least;
        if (!room((least + optional) * (part.size() + 3))) return false;
        if (least == 0) rule.resize(last.start);
        for (uint64_t i = 1; i < least; i++) rule.insert(rule.end(), part.begin(), part.end());
        uint32_t next = 0;
        for (uint64_t i = 0; i < optional; i++) {
            const uint32_t id = new_id();
            Rule one = part;
            if (i > 0 || endless) one.push_back({GrammarPart::rule, endless ? id : next});
            one.push_back({GrammarPart::alternative, 0});
            one.push_back({GrammarPart::end, 0});
            if (!add(id, std::move(one))) return false;
            next = id;
        }
        if (optional > 0) rule.push_back({GrammarPart::rule, next});
        last.rules *= rules;
        return true;
    }

    bool hexadecimal(size_t digits, uint32_t& value) {
        const std::string_view number = text_.substr(at_ + 2, digits);
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value, 16);
        if (number.size() < digits || error != std::errc() || end != number.data() + digits)
            return fail(std::to_string(digits) + " hexadecimal digits");
        at_ += 2 + digits;
        return true;
    }

    bool one_character(uint32_t& character) {
        const unsigned char c = static_cast<unsigned char>(peek());
        if (at_ >= text_.size()) return fail("the end of a string or of a set", "the end of the grammar");
        if (c == '\\') {
            const char escaped = peek(1);
            if (escaped == 'x') return hexadecimal(2, character);
            if (escaped == 'u') return hexadecimal(4, character);
            if (escaped == 'U') return hexadecimal(8, character);
            constexpr std::string_view kFrom = "trn\\\"[]-", kTo = "\t\r\n\\\"[]-";
            const size_t known = escaped ? kFrom.find(escaped) : std::string_view::npos;
            if (known == std::string_view::npos)
                return fail(R"(one of the escapes \t \r \n \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH)");
            character = static_cast<unsigned char>(kTo[known]);
            at_ += 2;
            return true;
        }
        const size_t length = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        character = length == 1 ? c : c & (0xFFu >> (length + 1));
        at_++;
        for (size_t i = 1; i < length && at_ < text_.size(); i++, at_++)
            character = (character << 6) | (static_cast<unsigned char>(text_[at_]) & 0x3F);
        return true;
    }

    std::string_view text_;
    size_t at_ = 0;
    size_t nested_ = 0;
    uint64_t parts_ = 0;
    std::unordered_map<std::string, uint32_t> names_;
    GrammarRules grammar_;
    std::optional<Error> error_;
};

}  // namespace

bool CharacterSet::holds(uint32_t character) const {
    if (any) return true;
    const bool inside = std::any_of(ranges.begin(), ranges.end(), [character](const auto& range) {
        return range.first <= character && character <= range.second;
    });
    return inside != inverse;
}

Result<GrammarRules> read_grammar(std::string_view text) { return Reader(text).run(); }

}  // namespace onebit
