#include "server/supervisor/schema_pattern.h"

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace onebit {
namespace {

constexpr size_t kMaxGroups = 100;
constexpr std::string_view kOperators = "|.()[]{}*+?^$";
constexpr const char* kEscapes =
    R"(one of the escapes \^ \$ \. \[ \] \( \) \| \{ \} \* \+ \? \\ \" \- \t \r \n \xHH \uHHHH \UHHHHHHHH)";
constexpr const char* kClassEscapes =
    R"(one of the escapes \[ \] \\ \" \- \t \r \n \xHH \uHHHH \UHHHHHHHH in a character class)";

bool is_operator(char c) { return kOperators.find(c) != std::string_view::npos; }

// Bytes of the escape at `at` that a grammar has too, 0 if it has none.
size_t escape_length(std::string_view text, size_t at) {
    if (at + 1 >= text.size()) return 0;
    size_t digits = 0;
    switch (text[at + 1]) {
        case 'x':
            digits = 2;
            break;
        case 'u':
            digits = 4;
            break;
        case 'U':
            digits = 8;
            break;
        default:
            return std::string_view("trn\\\"[]-").find(text[at + 1]) == std::string_view::npos ? 0 : 2;
    }
    if (text.size() - at - 2 < digits) return 0;
    for (size_t i = 0; i < digits; i++)
        if (!std::isxdigit(static_cast<unsigned char>(text[at + 2 + i]))) return 0;
    return 2 + digits;
}

// As std::stoi reads it: leading blanks, a sign, digits; what follows does not matter.
bool reads_as_int(std::string_view text) {
    size_t at = 0;
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) at++;
    bool negative = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) at++;
    const size_t first = at;
    const int64_t most = int64_t{std::numeric_limits<int>::max()} + (negative ? 1 : 0);
    int64_t value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; at++) {
        value = value * 10 + (text[at] - '0');
        if (value > most) return false;
    }
    return at > first;
}

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    std::optional<PatternFault> run() {
        while (at_ < text_.size())
            if (auto fault = step()) return fault;
        if (filled_.size() > 1) return fault("a ')' for each '('", "one that is missing");
        return {};
    }
    std::string grammar() && { return "root ::= \"\\\"\" (" + std::move(grammar_) + ") \"\\\"\"\n"; }

private:
    PatternFault fault(std::string expected, std::string found, std::string remedy = {}) const {
        // counted with the '^' before the text
        return {std::move(expected), std::move(found) + " at character " + std::to_string(at_ + 2), std::move(remedy)};
    }

    std::string quoted(size_t length) const { return "'" + std::string(text_.substr(at_, length)) + "'"; }

    PatternFault escape_fault(const char* known) const {
        const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        std::string remedy;
        if (c == 'd')
            remedy = "write [0-9]";
        else if (c == 'w')
            remedy = "write [A-Za-z0-9_]";
        else if (c == 's')
            remedy = R"(write [ \t\r\n])";
        else if (std::ispunct(static_cast<unsigned char>(c)))
            remedy = std::string("write ") + c + " without the backslash";
        return fault(known, "the escape " + quoted(2), remedy);
    }

    std::optional<PatternFault> step() {
        switch (text_[at_]) {
            case '(':
                return open_group();
            case ')':
                if (filled_.size() == 1) return fault("a '(' before each ')'", "none");
                filled_.pop_back();
                last_.pop_back();
                filled_.back() = true;
                grammar_ += ')';
                at_++;
                return {};
            case '.':
                part("[^\\x0A\\x0D]");
                at_++;
                return {};
            case '|':
                part("|");
                at_++;
                return {};
            case '^':
            case '$':
                return fault("anchors only at both ends", quoted(1));
            case '[':
                return character_class();
            case '*':
            case '+':
            case '?':
                if (!filled_.back()) return fault("something to repeat", quoted(1) + " after nothing");
                grammar_ += text_[at_++];
                return {};
            case '{':
                return repetition();
            default:
                return literal();
        }
    }

    // One more part of the sequence, which a repetition may follow.
    void part(std::string_view text) {
        grammar_ += ' ';
        last_.back() = grammar_.size();
        grammar_ += text;
        filled_.back() = true;
    }

    std::optional<PatternFault> open_group() {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '?') {
            if (at_ + 2 >= text_.size() || text_[at_ + 2] != ':')
                return fault("groups written (...) or (?:...)", quoted(3),
                             "look-around, named groups and flags have no grammar");
            at_ += 2;
        }
        if (filled_.size() > kMaxGroups) return fault("at most 100 nested groups", "more");
        at_++;
        part("(");
        filled_.push_back(false);
        last_.push_back(grammar_.size());
        return {};
    }

    std::optional<PatternFault> character_class() {
        const size_t start = at_++;
        while (at_ < text_.size() && text_[at_] != ']') {
            size_t length = 1;
            if (text_[at_] == '\\' && (length = escape_length(text_, at_)) == 0) return escape_fault(kClassEscapes);
            at_ += length;
        }
        if (at_ >= text_.size()) {
            at_ = start;
            return fault("a ']' that ends the character class", "none");
        }
        at_++;
        part(text_.substr(start, at_ - start));
        return {};
    }

    std::optional<PatternFault> repetition() {
        const size_t end = text_.find('}', at_);
        const std::string_view inside =
            end == std::string_view::npos ? std::string_view() : text_.substr(at_ + 1, end - at_ - 1);
        const size_t comma = inside.find(',');
        const std::string_view least = inside.substr(0, comma);
        bool good = comma == std::string_view::npos ? reads_as_int(least) : least.empty() || reads_as_int(least);
        if (good && comma != std::string_view::npos) {
            const std::string_view most = inside.substr(comma + 1);
            good = most.empty() || (most.find(',') == std::string_view::npos && reads_as_int(most));
        }
        if (!good) return fault("a repetition written {N}, {N,} or {N,M}", quoted(inside.size() + 2));
        if (!filled_.back()) return fault("something to repeat", "'{' after nothing");
        at_ = end + 1;
        std::string counts = first_int(least, 0), most = counts;
        if (comma != std::string_view::npos) most = first_int(inside.substr(comma + 1), -1);
        if (most == "0") counts = "0";  // llama.cpp leaves the part out, whatever the least is
        grammar_.insert(last_.back(), "(");
        grammar_ += "){" + counts + "," + (most == "-1" ? "" : most) + "}";
        return {};
    }

    // As std::stoi reads it, or the other for none.
    static std::string first_int(std::string_view text, int none) {
        return std::to_string(text.empty() ? none : std::atoi(std::string(text).c_str()));
    }

    std::optional<PatternFault> literal() {
        const size_t start = at_;
        std::string characters = "\"";
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\\') {
                if (at_ + 1 == text_.size()) return fault("a character after the backslash", "the end");
                const size_t length = is_operator(text_[at_ + 1]) ? 2 : escape_length(text_, at_);
                if (length == 0) return escape_fault(kEscapes);
                const size_t slash = is_operator(text_[at_ + 1]) ? 1 : 0;
                characters += text_.substr(at_ + slash, length - slash);
                at_ += length;
            } else if (is_operator(c)) {
                break;
            } else {
                // the last character before an operator stands alone, since that may repeat it
                const bool before_operator =
                    at_ + 1 < text_.size() && text_[at_ + 1] != '.' && is_operator(text_[at_ + 1]);
                if (c != '"' && before_operator && at_ > start) break;
                characters += c == '"' ? "\\\"" : std::string(1, c);
                at_++;
            }
        }
        if (at_ == start) return fault("operators in their place", quoted(1), "put a backslash before it");
        // as one with the text before, so that the bytes of a character stay together
        const bool repeated = at_ < text_.size() && std::string_view("*+?{").find(text_[at_]) != std::string_view::npos;
        if (!repeated && literal_end_ != 0 && literal_end_ == grammar_.size()) {
            grammar_.pop_back();
            grammar_ += characters.substr(1) + "\"";
        } else {
            part(characters + "\"");
        }
        literal_end_ = repeated ? 0 : grammar_.size();
        return {};
    }

    std::string_view text_;
    size_t at_ = 0;
    std::vector<bool> filled_ = {false};  // of each open group: is there something before that can be repeated
    std::string grammar_;
    size_t literal_end_ = 0;          // where its last text ends, if no repetition is behind it
    std::vector<size_t> last_ = {0};  // of each open group: where its last part begins in the grammar
};

}  // namespace

std::optional<PatternFault> pattern_fault(std::string_view pattern, std::string* grammar) {
    if (grammar) *grammar = "root ::= .*";
    if (pattern.empty()) return {};  // holds nothing back
    if (pattern.size() < 2 || pattern.front() != '^' || pattern.back() != '$')
        return PatternFault{"a pattern from '^' to '$'", "one without both", "write ^.*PATTERN.*$ to match anywhere"};
    Reader reader(pattern.substr(1, pattern.size() - 2));
    auto fault = reader.run();
    if (!fault && grammar) *grammar = std::move(reader).grammar();
    return fault;
}

}  // namespace onebit
