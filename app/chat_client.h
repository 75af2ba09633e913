// Talks to one engine over its socket: a chat completion, streamed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onebit {

struct ChatMessage {
    std::string role, content;  // "system", "user" or "assistant"
};

struct ChatRequest {
    std::vector<ChatMessage> messages;
    std::optional<double> temperature;
    std::optional<uint64_t> max_tokens, seed;
};

struct ChatAnswer {
    std::string text, reasoning;
    std::string finish_reason;  // "stop", "length", or "cancelled"
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
    double prompt_ms = 0, generated_ms = 0;  // as the engine measured them
};

// The body of the request. Error usage for text that is no UTF-8.
Result<std::string> chat_body(const ChatRequest& request);

// Splits a stream of server-sent events, in pieces of any size, into their data.
class EventReader {
public:
    // Adds what came and returns the events that are complete now.
    std::vector<std::string> feed(std::string_view bytes);

private:
    std::string line_, data_;
};

// Gets what is new of the answer; false ends it.
using OnText = std::function<bool(std::string_view text, bool reasoning)>;

// Adds one event's data to the answer. Error: what the engine reports in the stream; cancelled when on_text said so.
Result<void> add_event(const std::string& data, ChatAnswer& answer, const OnText& on_text);

// The error in the body of an answer that is not 200. A prompt that does not fit the context is a usage error with both
// numbers.
Error engine_error(int status, const std::string& body);

// cancel: looked at ten times a second; the engine is let go at once and the answer so far is returned, with the
// finish_reason "cancelled". Error unavailable when the engine goes away before the answer is complete.
Result<ChatAnswer> chat(const std::filesystem::path& socket, const ChatRequest& request, const OnText& on_text,
                        const std::atomic<bool>& cancel);

}  // namespace onebit
