// Reads a GBNF grammar as llama.cpp does, so that what it would cost can be told before the engine gets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace onebit {

// One part of a rule. A rule is its alternatives one after the other, each but the last with `alternative` behind it,
// and `end` at last.
struct GrammarPart {
    enum Type : uint8_t { end, alternative, rule, character, characters, token };
    Type type = end;
    uint32_t value = 0;  // rule: its number; character: the code point; characters: which of the sets
};

struct CharacterSet {
    bool inverse = false;
    bool any = false;
    std::vector<std::pair<uint32_t, uint32_t>> ranges;  // both ends included
    bool holds(uint32_t character) const;
};

struct GrammarRules {
    std::vector<std::vector<GrammarPart>> rules;  // each ends with `end`
    std::vector<CharacterSet> sets;
    uint32_t root = 0;
};

// Error usage (subject: "grammar", to be replaced by the caller) saying what is expected and where: what is no grammar,
// has no `root` or a rule that is not there; more than 256 nested groups, which the engine goes through on its stack; a
// repetition {N,M} with N above M, which it would write out for ever; rules or parts in numbers that take it seconds;
// U+0000, where it would stop reading; the grammars of another library, at which it ends itself. The reading is that of
// llama_grammar_parser of the pinned version's src/llama-grammar.cpp. Pure; linear in what it gives.
Result<GrammarRules> read_grammar(std::string_view text);

}  // namespace onebit
