// Which patterns of grammar_triggers the engine can search its output for without end or overflow.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "server/supervisor/schema_pattern.h"

namespace onebit {

constexpr size_t kMostTriggerBytes = 1024;

// The engine compiles such a pattern with std::regex, which goes down its stack for each group and each character, and
// searches all of the output again after each token. So refused are: more than 16 nested groups, look-ahead and
// references to groups, a repetition of what repeats or has a choice (the work may double with each character), counts
// above 100, and more than 4 repetitions (the work is a power of the output's length). A pattern that is let through
// takes time up to the fourth power of the output's length at the very worst. Pure; linear.
std::optional<PatternFault> trigger_pattern_fault(std::string_view pattern);

}  // namespace onebit
