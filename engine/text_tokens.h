// The text that bench and verify read, as tokens of a model.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "llama.h"

namespace onebit {

struct TextTokens {
    std::vector<llama_token> tokens;       // at least two, without a begin token
    llama_token begin = LLAMA_TOKEN_NULL;  // what the model wants before a text, or null
};

// text: the held-out text when empty. Error usage when it is shorter than two tokens.
Result<TextTokens> text_tokens(const llama_vocab* vocab, const std::string& text);

}  // namespace onebit
