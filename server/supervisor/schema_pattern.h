// Which `pattern` of a JSON schema the engine can hold its output to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onebit {

struct PatternFault {
    std::string expected, found, remedy;  // as in Error
};

// Nothing when llama.cpp makes a grammar of the pattern. Where it cannot, it takes any string and says so only in its
// log, so patterns are read here by the same rules: _pattern_to_rule() and gbnf_escape_length() of the pinned version's
// common/json-schema-to-grammar.cpp. Pure; time linear in the pattern's length.
// grammar: gets a grammar of the strings that the pattern takes, equal to llama.cpp's but for the names of its rules;
// the time is then that of the length times the number of '{' at worst.
std::optional<PatternFault> pattern_fault(std::string_view pattern, std::string* grammar = nullptr);

}  // namespace onebit
