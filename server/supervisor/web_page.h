// The chat page of llama.cpp, built into the program: served without an engine, so that it is there while one loads.
#pragma once

#include <string_view>

#include <cpp-httplib/httplib.h>

namespace onebit {

// path: without query, as it stands in the request line.
bool is_web_page_file(std::string_view path);

// Answers GET and HEAD with ETag and 304, packed as stored for clients that take gzip and unpacked for all others.
// false: no such file.
bool serve_web_page(std::string_view path, const httplib::Request& request, httplib::Response& response);

}  // namespace onebit
