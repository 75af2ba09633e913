#include "server/supervisor/text_markers.h"

#include <algorithm>
#include <array>

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

bool is_escape(std::string_view text) { return text.starts_with("\\u003c") || text.starts_with("\\u003C"); }

size_t count_of(std::string_view body, std::string_view part) {
    size_t n = 0;
    for (size_t at = body.find(part); at != std::string_view::npos; at = body.find(part, at + part.size())) n++;
    return n;
}

}  // namespace

Result<void> check_markers(std::string_view body) {
    size_t n = 0;
    for (size_t at = body.find('<'); at != std::string_view::npos; at = body.find('<', at + 1))
        n += is_marker(body.substr(at)) ? 1 : 0;
    for (size_t at = body.find('\\'); at != std::string_view::npos; at = body.find('\\', at + 2))
        n += at + 1 < body.size() && body[at + 1] == 'u' && is_escape(body.substr(at)) ? 1 : 0;
    n += count_of(body, "INST]");
    if (n <= kMostMarkers) return {};
    return Error{ErrorCode::usage, "request body",
                 "at most " + std::to_string(kMostMarkers) + " markers of special tokens, such as <|im_start|>",
                 std::to_string(n), "leave them out of the texts"};
}

}  // namespace onebit
