#include "engine/devices_host.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/unique_fd.h"

namespace onebit {
namespace {

constexpr size_t largest_small_file = 1 << 20;

uint64_t leading_number(std::string_view text) {
    const auto start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) return 0;
    uint64_t value = 0;
    const auto result = std::from_chars(text.data() + start, text.data() + text.size(), value);
    return result.ec == std::errc() ? value : 0;
}

// The number after `key` at the start of a line, as in /proc/meminfo and memory.stat.
uint64_t number_of_line(const std::string& text, std::string_view key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.size() > key.size() && line.starts_with(key) && (line[key.size()] == ' ' || line[key.size()] == ':')) {
            return leading_number(std::string_view(line).substr(key.size() + 1));
        }
    }
    return 0;
}

struct GroupFiles {
    const char *limit, *usage, *reclaimable;
};

// Narrows `memory` to the limit of one control group.
void apply_group(HostMemory& memory, const std::string& folder, const GroupFiles& files) {
    const std::string text = read_small_file(folder + "/" + files.limit);
    const uint64_t limit = leading_number(text);  // "max" gives 0; version 1 writes a huge number for no limit
    if (text.empty() || limit == 0 || (memory.total != 0 && limit >= memory.total)) return;
    const uint64_t usage = read_number_file(folder + "/" + files.usage);
    const uint64_t cache = number_of_line(read_small_file(folder + "/memory.stat"), files.reclaimable);
    const uint64_t held = usage > cache ? usage - cache : 0;
    const uint64_t left = limit > held ? limit - held : 0;
    memory.total = limit;
    memory.available = memory.limited || memory.available != 0 ? std::min(memory.available, left) : left;
    memory.limited = true;
}

// The group itself and all above it: each may set a limit.
void apply_groups(HostMemory& memory, const std::string& mount, std::string path, const GroupFiles& files) {
    for (;;) {
        apply_group(memory, mount + path, files);
        const auto slash = path.find_last_of('/');
        if (path.empty() || slash == std::string::npos) return;
        path.resize(slash);
    }
}

}  // namespace

std::string read_small_file(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text;
    if (!file) return text;
    char buffer[4096];
    for (;;) {
        const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
        if (count <= 0 || text.size() > largest_small_file) return text;
        text.append(buffer, static_cast<size_t>(count));
    }
}

uint64_t read_number_file(const std::string& path) { return leading_number(read_small_file(path)); }

HostMemory read_host_memory(const std::string& root) {
    HostMemory memory;
    const std::string meminfo = read_small_file(root + "/proc/meminfo");
    constexpr uint64_t most_kib = UINT64_MAX / 1024;
    memory.total = std::min(number_of_line(meminfo, "MemTotal"), most_kib) * 1024;
    memory.available = std::min(number_of_line(meminfo, "MemAvailable"), most_kib) * 1024;

    std::istringstream lines(read_small_file(root + "/proc/self/cgroup"));
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        std::string path = line.substr(second + 1);
        if (path == "/") path.clear();
        // a container sees its host's path but has its own group mounted at the root, which apply_groups ends with
        if (controllers == ",,") {
            apply_groups(memory, root + "/sys/fs/cgroup", path, {"memory.max", "memory.current", "inactive_file"});
        } else if (controllers.find(",memory,") != std::string::npos) {
            apply_groups(memory, root + "/sys/fs/cgroup/memory", path,
                         {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"});
        }
    }
    if (memory.total != 0) memory.available = std::min(memory.available, memory.total);
    return memory;
}

}  // namespace onebit
