#include "tools/make-model/vocabulary.h"

namespace onebit {
namespace {

constexpr int32_t text_type = 1, control_type = 3, unused_type = 5;

std::string utf8(uint32_t code) {
    if (code < 0x80) return {static_cast<char>(code)};
    return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2 writes a byte as the character of its number if that can be seen, and the others as those from 256 on.
std::vector<std::string> byte_tokens() {
    const auto seen = [](uint32_t byte) {
        return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    };
    std::vector<std::string> tokens;
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (seen(byte)) tokens.push_back(utf8(byte));
    }
    const size_t unseen = 256 - tokens.size();
    for (uint32_t i = 0; i < unseen; i++) tokens.push_back(utf8(256 + i));
    return tokens;
}

}  // namespace

Vocabulary make_vocabulary(uint32_t tokens, uint32_t text_tokens) {
    Vocabulary vocabulary;
    vocabulary.tokens = byte_tokens();
    vocabulary.tokens.reserve(tokens);
    vocabulary.merges.reserve(text_tokens);
    // words to lengthen: the space and the letters, then what comes of them
    std::vector<std::string> words = {utf8(256 + ' ')};
    for (char letter = 'a'; letter <= 'z'; letter++) words.emplace_back(1, letter);
    words.reserve(text_tokens);
    for (size_t next = 0; vocabulary.tokens.size() < text_tokens; next++) {
        const std::string start = words[next];
        for (char letter = 'a'; letter <= 'z' && vocabulary.tokens.size() < text_tokens; letter++) {
            words.push_back(start + letter);
            vocabulary.tokens.push_back(words.back());
            vocabulary.merges.push_back(start + " " + letter);
        }
    }
    vocabulary.types.assign(vocabulary.tokens.size(), text_type);
    const auto add = [&vocabulary](const std::string& token, int32_t type) {
        vocabulary.tokens.push_back(token);
        vocabulary.types.push_back(type);
        return static_cast<uint32_t>(vocabulary.tokens.size() - 1);
    };
    vocabulary.end_of_text = add("<|endoftext|>", control_type);
    vocabulary.turn_start = add("<|im_start|>", control_type);
    vocabulary.turn_end = add("<|im_end|>", control_type);
    while (vocabulary.tokens.size() < tokens) {
        add("<|unused" + std::to_string(vocabulary.tokens.size()) + "|>", unused_type);
    }
    return vocabulary;
}

}  // namespace onebit
