// What llama.cpp's server is called with in an engine process.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {

// The whole command line after the program's name: what 1bit needs, then the user's own, which win where they may, then
// the socket. Error usage for an argument that would open a port, a second door or the router: those are the
// supervisor's.
Result<std::vector<std::string>> engine_arguments(const std::string& socket, const std::vector<std::string>& users);

// Removes llama.cpp's environment variables that would do the same. Call before any thread exists.
void clean_engine_environment();

}  // namespace onebit
