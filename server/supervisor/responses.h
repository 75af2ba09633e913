// The shape of what the supervisor itself answers.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <cpp-httplib/httplib.h>
#include <nlohmann/json_fwd.hpp>

#include "base/error.h"

namespace onebit {

// {"error":{"message","type","code"}}; message is made printable first, so any bytes are safe. code: the status, or a
// word of its own for what a client may want to tell apart.
std::string error_body(int status, std::string_view type, std::string_view message, std::string_view code = {});

// Gives an error's body, ours or llama.cpp's, the form that clients of the route know: those of /v1/messages tell an
// error by a "type" of its own. Other bodies stay as they are.
void put_in_form(std::string_view path, std::string& error_body);

void answer_json(httplib::Response& response, int status, const nlohmann::json& body);
void answer_error(httplib::Response& response, int status, std::string_view type, std::string_view message,
                  std::string_view code = {});
void answer_error(httplib::Response& response, const Error& error, std::chrono::milliseconds retry_after = {});

// The 404 for a path that nothing is under.
std::string no_route_body(std::string_view path);
void answer_no_route(httplib::Response& response, std::string_view path);

// What a request is told that the end of the server ends.
inline constexpr std::string_view kStopping = "the server is stopping and has ended this request";
void answer_stopping(httplib::Response& response);

// The name clients know errors of that status by, such as "invalid_request_error".
const char* error_type(int status);

}  // namespace onebit
