// A vocabulary for byte-pair encoding that needs no text to learn from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onebit {

struct Vocabulary {
    std::vector<std::string> tokens;
    std::vector<int32_t> types;       // as llama.cpp numbers them: 1 text, 3 control, 5 unused
    std::vector<std::string> merges;  // "LEFT RIGHT", the first ones win
    uint32_t end_of_text = 0, turn_start = 0, turn_end = 0;
};

// text_tokens: 256 or more. The bytes come first, in GPT-2's order and writing, then words of small letters, with and
// without a space before them, each of a shorter word and a letter: so any text can be encoded and each token has a
// merge. After the text come <|endoftext|>, <|im_start|>, <|im_end|> and unused tokens up to `tokens`, which is
// at least text_tokens + 3.
Vocabulary make_vocabulary(uint32_t tokens, uint32_t text_tokens);

}  // namespace onebit
