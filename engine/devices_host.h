// How much memory this process may use: the machine's, or less where a control group limits it.
#pragma once

#include <cstdint>
#include <string>

namespace onebit {

struct HostMemory {
    uint64_t total = 0;      // 0: unknown
    uint64_t available = 0;  // without swapping; never more than total
    bool limited = false;    // a control group's limit is smaller than the machine's memory
};

// Reads ROOT/proc/meminfo, ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup (version 1 and 2). root: empty but in tests.
// What cannot be read counts as not there. Safe from any thread.
HostMemory read_host_memory(const std::string& root = {});

// Whole text of a small file such as those of /proc and /sys; empty if it cannot be read. At most 1 MiB.
std::string read_small_file(const std::string& path);

// The number that a file of sysfs holds; 0 if it holds none.
uint64_t read_number_file(const std::string& path);

}  // namespace onebit
