// Tells which grammars the engine could not follow in reasonable time, before it gets them.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/supervisor/grammar_rules.h"

namespace onebit {

// Error usage (subject: "grammar", to be replaced by the caller) for what read_grammar() refuses, and for
//  - left recursion, also through rules that may be empty, and chains of first rules that are deeper than 2,000 or that
//    lead to each other in more than 100,000 ways: the engine goes through all of them on its stack;
//  - a character, or a set of characters, that no text can have: the engine then takes any token, and may end
//    itself;
//  - ambiguity. The engine keeps one stack for each place of the grammar that the text so far may have led to, and
//    looks at each way anew for each character of each token. It is refused when more than 4,000 stacks, or more than
//    20,000 ways to the same text, come up. Both are counted by following the grammar as the engine does, from the
//    root and from each sequence of rules in it, through the 16 characters that leave the most ways open (chosen one
//    by one). That bounds what a text of 16 characters at any place of the grammar costs, for the characters so
//    chosen; a grammar that grows only later, or only after another choice of characters, is not found.
// Pure. Cost: bounded, about 0.2 s at worst; well below a millisecond for a grammar of a hundred rules.
Result<void> check_grammar(std::string_view text);

}  // namespace onebit
