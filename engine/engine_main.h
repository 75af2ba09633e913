// The engine process: llama.cpp's server code in this process, with a heartbeat for the supervisor.
#pragma once

#include <string>
#include <vector>

#include "server/supervisor/member_failure.h"

namespace onebit {

// Runs until SIGTERM. socket: path of the Unix socket, ends in ".sock". heartbeat_fd: see
// server/supervisor/heartbeat.h. arguments: of llama.cpp's server, see engine_arguments.h. The supervisor has set
// PR_SET_PDEATHSIG, so that it ends with that one. excluded: members that a tandem is made without. Returns the exit
// code: 2 for a wrong argument, 1 when llama.cpp's server failed.
int engine_main(const std::string& socket, int heartbeat_fd, const std::vector<std::string>& arguments,
                const std::vector<ExcludedMember>& excluded = {});

}  // namespace onebit
