// Starts one child process and reads what the kernel says about it. Knows nothing of engines.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace onebit {

struct ChildProcess {
    pid_t pid = -1;
    UniqueFd pidfd;   // readable once the child has ended; unset where the kernel has none
    UniqueFd output;  // its standard output and error, non-blocking
};

// Starts `program` with `arguments` (argv[0] excluded) in a process group of its own, standard input from /dev/null.
// Every descriptor but `inherited` is closed in it; it is killed when the thread that called this ends; the kernel's
// OOM killer takes it before the caller. Error io, not_found or no_space naming the program.
Result<ChildProcess> spawn_child(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                                 int inherited);

// Kills the whole process group.
void kill_child(pid_t pid, int signal);

struct ChildSample {
    bool valid = false;  // false: no such process any more, or only its zombie
    char state = '?';    // as in /proc/PID/stat: R, S, D, T, ...
    uint64_t resident_bytes = 0;
    uint64_t cpu_milliseconds = 0;
};
ChildSample sample_child(pid_t pid);

// How a child ended, from waitpid's status. by_us: the SIGKILL was ours, not the OOM killer's. resident: its memory
// when last seen, 0 if never.
std::string describe_exit(int status, bool by_us, uint64_t resident);

// Bytes that the process had read from disk, mapped files included; 0 where the kernel does not say.
uint64_t disk_bytes_read(pid_t pid);

// What the kernel's OOM killer adds for a child of this process: at least 500 and more than our own.
int child_oom_score_adj(int own);

}  // namespace onebit
