// Tells which of the engine's errors are the client's doing: llama.cpp answers some of those with status 500.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// body: of an engine's answer with status 500, {"error": {"code", "message", "type"}}.
// The body to send with status 400 instead, if the message is one that llama.cpp has for a request that is at fault: a
// field of a wrong type, missing or not known, an input above the physical batch. Each of the messages is thrown in a
// place of the pinned version that only what came in the request leads to; any other stays a 500.
// Ends of messages that repeat the request are left out.
std::optional<std::string> client_fault(std::string_view path, std::string_view body);

}  // namespace onebit
