#include "server/supervisor/member_failure.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/error.h"

namespace onebit {
namespace {

constexpr size_t kMostReason = 300;

bool ended_by_itself(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
    switch (WTERMSIG(status)) {
        case SIGABRT:
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP:
        case SIGSYS:
            return true;
        default:
            return false;
    }
}

}  // namespace

std::string blamed_member(const HeartbeatPage& page, const EngineEnd& end) {
    const uint64_t running = page.running_member.load(std::memory_order_relaxed);
    if (running == 0 || end.stopped_by_signal) return "";
    if (!end.hung && (end.killed_by_us || !ended_by_itself(end.wait_status))) return "";
    const TandemReport tandem = read_tandem(page.tandem);
    return running <= tandem.members.size() ? printable(tandem.members[running - 1].name) : "";
}

std::vector<std::string> exclusion_arguments(const std::vector<ExcludedMember>& excluded) {
    std::vector<std::string> words;
    for (const ExcludedMember& one : excluded) {
        std::string reason = printable(one.reason.substr(0, kMostReason));
        words.insert(words.end(), {"--exclude-member", one.member, "--reason", reason.empty() ? "none given" : reason});
    }
    return words;
}

}  // namespace onebit
