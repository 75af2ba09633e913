#include "server/supervisor/grammar_check.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace onebit {
namespace {

constexpr size_t kMostStacks = 4000;
constexpr double kMostWays = 20'000;
constexpr int kCharacters = 16;
constexpr uint64_t kMostWork = 20'000'000;
constexpr size_t kMostChain = 2000;
constexpr double kMostLeads = 100'000;

using Part = GrammarPart;

Error refused(std::string expected, std::string found, std::string remedy = {}) {
    return {ErrorCode::usage, "grammar", std::move(expected), std::move(found), std::move(remedy)};
}

bool ends(const Part& part) { return part.type == Part::end || part.type == Part::alternative; }
bool terminal(const Part& part) { return !ends(part) && part.type != Part::rule; }

// The rules one after the other, so that a place in them is one number.
struct Flat {
    std::vector<Part> parts;
    std::vector<uint32_t> starts;  // of each rule
    const std::vector<CharacterSet>* sets = nullptr;

    explicit Flat(const GrammarRules& grammar) : sets(&grammar.sets) {
        for (const auto& rule : grammar.rules) {
            starts.push_back(static_cast<uint32_t>(parts.size()));
            parts.insert(parts.end(), rule.begin(), rule.end());
        }
    }
    bool takes(uint32_t at, uint32_t character) const {
        const Part& part = parts[at];
        if (part.type == Part::character) return part.value == character;
        return part.type == Part::characters && (*sets)[part.value].holds(character);
    }
};

// Whether text can hold a character from `from` to `to`: not U+0000, no surrogates, nothing above U+10FFFF.
bool in_text(uint32_t from, uint32_t to) {
    return from <= to && from <= 0x10FFFF && to > 0 && !(from >= 0xD800 && to <= 0xDFFF);
}

bool holds_any(const CharacterSet& set) {
    auto ranges = set.ranges;
    if (!set.inverse)
        return std::any_of(ranges.begin(), ranges.end(), [](const auto& r) { return in_text(r.first, r.second); });
    std::sort(ranges.begin(), ranges.end());
    uint32_t left = 0;  // the first that is in no range so far
    for (const auto& [from, to] : ranges) {
        if (from > left && in_text(left, from - 1)) return true;
        if (to >= 0x10FFFF) return false;
        left = std::max(left, to + 1);
    }
    return true;
}

// At a character that no token has, the engine takes any token, and may end itself.
Result<void> check_characters(const GrammarRules& grammar) {
    for (const CharacterSet& set : grammar.sets)
        if (!set.any && !holds_any(set)) return refused("sets that hold a character of text", "one without");
    for (const auto& rule : grammar.rules)
        for (const GrammarPart& part : rule)
            if (part.type == Part::character && !in_text(part.value, part.value))
                return refused("characters of text", "one that text cannot hold");
    return {};
}

// The rules that can be the first of each, as the engine goes through them: it takes only a rule with an alternative
// that is written empty for one that may be empty.
class FirstRules {
public:
    explicit FirstRules(const Flat& flat) : first_(flat.starts.size()), empty_(flat.starts.size()) {
        for (size_t rule = 0; rule < flat.starts.size(); rule++) empty_[rule] = written_empty(flat, flat.starts[rule]);
        for (size_t rule = 0; rule < flat.starts.size(); rule++) {
            bool at_front = true;
            for (uint32_t at = flat.starts[rule]; flat.parts[at].type != Part::end; at++) {
                const Part& part = flat.parts[at];
                if (part.type == Part::rule && at_front) {
                    first_[rule].push_back(part.value);
                    at_front = empty_[part.value];
                } else {
                    at_front = part.type == Part::alternative;
                }
            }
        }
    }

    Result<void> check() {
        enum State : uint8_t { untouched, open, done };
        std::vector<State> state(first_.size(), untouched);
        std::vector<double> leads(first_.size(), 1);
        double all = 0;
        struct Frame {
            uint32_t rule;
            size_t next;
        };
        std::vector<Frame> stack;
        std::vector<size_t> depth(first_.size(), 1);
        for (uint32_t root = 0; root < first_.size(); root++) {
            if (state[root] == untouched) stack.push_back({root, 0});
            while (!stack.empty()) {
                auto& [rule, next] = stack.back();
                state[rule] = open;
                if (next < first_[rule].size()) {
                    const uint32_t child = first_[rule][next++];
                    if (state[child] == open)
                        return refused("rules that do not begin with themselves", "left recursion");
                    if (state[child] == untouched) {
                        stack.push_back({child, 0});
                    } else {
                        leads[rule] += leads[child];
                        depth[rule] = std::max(depth[rule], depth[child] + 1);
                    }
                    continue;
                }
                const uint32_t finished = rule;
                state[finished] = done;
                stack.pop_back();
                // the engine begins at the rules in their order, and goes again through those it has seen
                if (stack.empty()) all += leads[finished];
                if (depth[finished] > kMostChain) return refused("chains of at most 2000 first rules", "more");
                if (std::max(all, leads[finished]) > kMostLeads)
                    return refused("at most 100000 ways through rules that begin others", "more");
                if (stack.empty()) continue;
                leads[stack.back().rule] += leads[finished];
                depth[stack.back().rule] = std::max(depth[stack.back().rule], depth[finished] + 1);
            }
        }
        return {};
    }

private:
    static bool written_empty(const Flat& flat, uint32_t at) {
        bool at_front = true;
        for (;; at++) {
            if (ends(flat.parts[at]) && at_front) return true;
            if (flat.parts[at].type == Part::end) return false;
            at_front = flat.parts[at].type == Part::alternative;
        }
    }
    std::vector<std::vector<uint32_t>> first_;
    std::vector<bool> empty_;
};

// Follows the grammar as the engine does. A stack is a number: its top, a place in the rules, and the stack below.
class Follower {
public:
    explicit Follower(const Flat& flat) : flat_(flat) { nodes_.push_back({0, 0}); }

    // From the given place, as if it were the whole grammar.
    Result<void> from(uint32_t place) {
        Ways ways;
        ONEBIT_RETURN_IF_ERROR(advance(push(place, kEmpty), 1, ways));
        return follow(std::move(ways));
    }
    // From all of the rule's alternatives at once.
    Result<void> from_rule(uint32_t rule) {
        Ways ways;
        for (uint32_t at = flat_.starts[rule];; at++) {
            if (at == flat_.starts[rule] || flat_.parts[at - 1].type == Part::alternative)
                ONEBIT_RETURN_IF_ERROR(advance(push(at, kEmpty), 1, ways));
            if (flat_.parts[at].type == Part::end) break;
        }
        return follow(std::move(ways));
    }

private:
    static constexpr uint32_t kEmpty = 0;
    using Ways = std::unordered_map<uint32_t, double>;  // of each stack: in how many ways the text leads to it
    struct Node {
        uint32_t top, below;
    };

    Result<void> follow(Ways ways) {
        for (int i = 0; i < kCharacters && !ways.empty(); i++) {
            ONEBIT_RETURN_IF_ERROR(judge(ways));
            const uint32_t character = widest(ways);
            Ways next;
            for (const auto& [stack, count] : ways) {
                if (++work_ > kMostWork) return too_much();
                if (stack == kEmpty || !flat_.takes(nodes_[stack].top, character)) continue;
                const uint32_t after = nodes_[stack].top + 1;
                ONEBIT_RETURN_IF_ERROR(advance(push(after, nodes_[stack].below), count, next));
            }
            ways = std::move(next);
        }
        return judge(ways);
    }

    static Error too_much() {
        return refused("a grammar that is followed in a moment", "one that takes longer", "make it smaller");
    }
    static Result<void> judge(const Ways& ways) {
        double all = 0;
        for (const auto& [stack, count] : ways) all += count;
        if (ways.size() > kMostStacks || all > kMostWays)
            return refused("at most 4000 places and 20000 ways that the same text can lead to",
                           "an ambiguous grammar with more",
                           "write optional parts that follow each other as one, {0,N}");
        return {};
    }

    // The stack with that place on it, or what is left below at the end of a rule.
    uint32_t push(uint32_t place, uint32_t below) {
        if (ends(flat_.parts[place])) return below;
        const uint64_t key = (uint64_t{place} << 32) | below;
        const auto [found, added] = known_.emplace(key, static_cast<uint32_t>(nodes_.size()));
        if (added) nodes_.push_back({place, below});
        return found->second;
    }

    // Adds each stack with a character on top that the given one leads to without reading any.
    Result<void> advance(uint32_t stack, double count, Ways& ways) {
        auto memory = closures_.find(stack);
        if (memory == closures_.end()) {
            std::vector<uint32_t> found, todo = {stack};
            std::unordered_set<uint32_t> seen;
            while (!todo.empty()) {
                const uint32_t one = todo.back();
                todo.pop_back();
                if (!seen.insert(one).second) continue;
                if (++work_ > kMostWork) return too_much();
                if (seen.size() > 5 * kMostStacks)
                    return refused("rules that come to a character", "rules that lead to each other without one");
                if (one == kEmpty || terminal(flat_.parts[nodes_[one].top])) {
                    found.push_back(one);
                    continue;
                }
                const auto [top, below] = nodes_[one];
                const uint32_t rest = push(top + 1, below);
                const uint32_t start = flat_.starts[flat_.parts[top].value];
                for (uint32_t at = start;; at++) {
                    if (at == start || flat_.parts[at - 1].type == Part::alternative) todo.push_back(push(at, rest));
                    work_++;
                    if (flat_.parts[at].type == Part::end) break;
                }
            }
            memory = closures_.emplace(stack, std::move(found)).first;
        }
        work_ += memory->second.size();
        if (work_ > kMostWork) return too_much();
        for (uint32_t one : memory->second) ways[one] += count;
        return {};
    }

    // Of the characters that the stacks ask for, the one that most ways take.
    uint32_t widest(const Ways& ways) {
        std::array<uint32_t, 20> tried = {'a', '0', ' ', '"'};
        size_t n = 4;
        for (const auto& [stack, count] : ways) {
            if (stack == kEmpty || n == tried.size()) continue;
            const Part& part = flat_.parts[nodes_[stack].top];
            uint32_t character = part.value;
            if (part.type == Part::characters) {
                const CharacterSet& set = (*flat_.sets)[part.value];
                if (set.inverse || set.ranges.empty()) continue;
                character = set.ranges.front().first;
            } else if (part.type != Part::character) {
                continue;
            }
            if (std::find(tried.begin(), tried.begin() + n, character) == tried.begin() + n) tried[n++] = character;
        }
        uint32_t best = tried[0];
        double most = -1;
        for (size_t i = 0; i < n; i++) {
            double all = 0;
            for (const auto& [stack, count] : ways)
                if (stack != kEmpty && flat_.takes(nodes_[stack].top, tried[i])) all += count;
            work_ += ways.size();
            if (all > most) best = tried[i];
            most = std::max(most, all);
        }
        return best;
    }

    const Flat& flat_;
    std::vector<Node> nodes_;
    std::unordered_map<uint64_t, uint32_t> known_;
    std::unordered_map<uint32_t, std::vector<uint32_t>> closures_;
    uint64_t work_ = 0;
};

}  // namespace

Result<void> check_grammar(std::string_view text) {
    Result<GrammarRules> read = read_grammar(text);
    if (!read.ok()) return std::move(read).error();
    ONEBIT_RETURN_IF_ERROR(check_characters(*read));
    const Flat flat(*read);
    ONEBIT_RETURN_IF_ERROR(FirstRules(flat).check());
    Follower follower(flat);
    ONEBIT_RETURN_IF_ERROR(follower.from_rule(read->root));
    // a sequence of characters leads on in one way: only rules can open several
    for (uint32_t at = 0; at < flat.parts.size(); at++) {
        const bool begins = at == 0 || flat.parts[at - 1].type != Part::rule;
        if (flat.parts[at].type == Part::rule && begins) ONEBIT_RETURN_IF_ERROR(follower.from(at));
    }
    return {};
}

}  // namespace onebit
