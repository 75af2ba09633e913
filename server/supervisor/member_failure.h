// Which member of a tandem ended its engine process, and how the next process is told to do without it.
#pragma once

#include <string>
#include <vector>

#include "server/supervisor/heartbeat.h"

namespace onebit {

// A member that an engine's tandem is not to use, and why, in one line.
struct ExcludedMember {
    std::string member, reason;
    bool operator==(const ExcludedMember&) const = default;
};

struct EngineEnd {
    int wait_status = 0;             // of waitpid
    bool killed_by_us = false;       // after stop(), or because it hung
    bool hung = false;               // without progress
    bool stopped_by_signal = false;  // SIGSTOP, which is nobody's failure
};

// The member that worked at a graph when the process aborted, crashed, gave up or hung; empty when none did. A SIGKILL
// of others (out of memory, a person) blames nobody. A wrong blame costs speed, never an answer. Pure.
std::string blamed_member(const HeartbeatPage& page, const EngineEnd& end);

// "--exclude-member NAME --reason TEXT" for each.
std::vector<std::string> exclusion_arguments(const std::vector<ExcludedMember>& excluded);

}  // namespace onebit
