// The paths that this server and llama.cpp's have, so that a wrong method is told from a wrong path.
#pragma once

#include <string_view>

namespace onebit {

// path: without query. "GET, HEAD" and the like, OPTIONS left out; empty when the path is not known here and the engine
// has to tell.
std::string_view methods_of(std::string_view path);

// NAME of "/v1/models/NAME" and "/models/NAME", slashes included, as it stands in the path; empty for other paths.
std::string_view model_of_path(std::string_view path);

// A path below one of the APIs that neither this server nor the engine has, so that no engine need be asked.
bool is_surely_unknown(std::string_view path);

bool has_method(std::string_view methods, std::string_view method);

}  // namespace onebit
