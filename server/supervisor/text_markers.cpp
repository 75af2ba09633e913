#include "server/supervisor/text_markers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace onebit {
namespace {

bool is_marker(std::string_view text) {
    // behind the '<'; "\xef\xbd\x9c" is the wide bar of DeepSeek's
    static constexpr std::array<std::string_view, 14> kTails = {
        "|",    "\xef\xbd\x9c",   "s>",           "/s>",    "bos>",   "eos>",    "pad>",
        "unk>", "start_of_turn>", "end_of_turn>", "unused", "think>", "/think>", "tool_call>"};
    text.remove_prefix(1);
    return std::any_of(kTails.begin(), kTails.end(), [text](std::string_view tail) { return text.starts_with(tail); });
}

// The character of an escape at its backslash that a marker may have in it; empty for others.
std::string_view unescaped(std::string_view text) {
    static constexpr std::string_view kBar = "\xef\xbd\x9c";
    if (text.starts_with("\\/")) return text.substr(1, 1);
    if (text.size() < 6 || text[1] != 'u') return {};
    unsigned code = 0;
    if (std::from_chars(text.data() + 2, text.data() + 6, code, 16).ptr != text.data() + 6) return {};
    static constexpr auto kAscii = [] {
        std::array<char, 128> all{};
        for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<char>(i);
        return all;
    }();
    if (code < kAscii.size()) return {&kAscii[code], 1};
    return code == 0xff5c ? kBar : std::string_view();
}

// The body with such escapes resolved: no JSON any more, but the texts in it are as the tokenizer will see them.
std::string without_escapes(std::string_view body) {
    std::string result;
    result.reserve(body.size());
    for (size_t at = 0; at < body.size();) {
        const size_t slash = std::min(body.find('\\', at), body.size());
        result.append(body.substr(at, slash - at));
        at = slash;
        if (at == body.size()) break;
        const std::string_view character = unescaped(body.substr(at));
        const size_t length = character.empty() ? 2 : body[at + 1] == 'u' ? 6 : 2;
        result.append(character.empty() ? body.substr(at, length) : character);
        at = std::min(at + length, body.size());
    }
    return result;
}

size_t count_of(std::string_view body, std::string_view part) {
    size_t n = 0;
    for (size_t at = body.find(part); at != std::string_view::npos; at = body.find(part, at + part.size())) n++;
    return n;
}

}  // namespace

Result<void> check_markers(std::string_view body) {
    std::string plain;
    if (body.find('\\') != std::string_view::npos) {
        plain = without_escapes(body);
        body = plain;
    }
    size_t n = 0;
    for (size_t at = body.find('<'); at != std::string_view::npos; at = body.find('<', at + 1))
        n += is_marker(body.substr(at)) ? 1 : 0;
    n += count_of(body, "INST]");
    if (n <= kMostMarkers) return {};
    return Error{ErrorCode::usage, "request body",
                 "at most " + std::to_string(kMostMarkers) + " markers of special tokens, such as <|im_start|>",
                 std::to_string(n), "leave them out of the texts"};
}

}  // namespace onebit
