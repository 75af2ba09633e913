// The engine's errors in words for the client: which are its own doing, though llama.cpp answers some of those with
// status 500, and what to start with for a route that is not served.
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

// body: of an engine's answer with status 501. Where it names an option of llama.cpp's server to start with, says how
// that is given to this one.
void say_our_option(std::string& body);

}  // namespace onebit
