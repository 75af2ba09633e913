// Counts what a tokenizer may take for special tokens, of which the engine takes no more than it can go through.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace onebit {

// llama.cpp cuts a text at each special token in it and goes through all pieces so far at each cut: 100,000 of them
// keep a thread busy for half a minute, 20,000 for about a second.
constexpr size_t kMostMarkers = 20'000;

// Error usage when a JSON body holds more than kMostMarkers markers of the spellings that chat templates have, such as
// <|im_start|>, </s>, <start_of_turn> and [INST], wherever they stand and however they are escaped. Tokens of other
// spellings, which a model may have too, are not counted. Pure; about 1 ns per byte, a copy where there are escapes.
Result<void> check_markers(std::string_view body);

}  // namespace onebit
