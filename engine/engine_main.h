// The engine process: llama.cpp's server code in this process, with a heartbeat for the supervisor.
#pragma once

#include <string>
#include <vector>

namespace onebit {

// Runs until SIGTERM. socket: path of the Unix socket, ends in ".sock". heartbeat_fd: see server/supervisor/heartbeat.h.
// arguments: of llama.cpp's server. Ends with the supervisor (PR_SET_PDEATHSIG). Returns the exit code.
int engine_main(const std::string& socket, int heartbeat_fd, const std::vector<std::string>& arguments);

}  // namespace onebit
