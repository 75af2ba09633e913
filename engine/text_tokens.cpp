#include "engine/text_tokens.h"

#include <algorithm>
#include <cstdint>

#include "engine/bench.h"

namespace onebit {

Result<TextTokens> text_tokens(const llama_vocab* vocab, const std::string& given) {
    const std::string text = given.empty() ? held_out_text() : given;
    TextTokens result;
    result.tokens.resize(text.size() + 8);
    const int32_t count =
        llama_tokenize(vocab, text.data(), static_cast<int32_t>(std::min<size_t>(text.size(), INT32_MAX)),
                       result.tokens.data(), static_cast<int32_t>(result.tokens.size()), false, false);
    if (count < 2)
        return Error{ErrorCode::usage, "--text", "at least two tokens", std::to_string(std::max(count, 0)),
                     "take a longer text"};
    result.tokens.resize(static_cast<size_t>(count));
    if (llama_vocab_get_add_bos(vocab)) result.begin = llama_vocab_bos(vocab);
    return result;
}

}  // namespace onebit
