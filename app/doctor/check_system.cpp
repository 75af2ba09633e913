#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <system_error>

#include "app/doctor/checks.h"
#include "engine/devices_host.h"
#include "engine/devices_text.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t MiB = 1ull << 20, GiB = 1ull << 30;

std::string limit_text(uint64_t bytes) { return bytes == UINT64_MAX ? "unlimited" : bytes_text(bytes); }

// The inode of the socket that listens on a port, from /proc/net/tcp or tcp6; 0 if none.
uint64_t listener(const std::string& table, uint16_t port) {
    std::istringstream lines(table);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout;
        uint64_t inode = 0;
        fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
        const auto colon = local.find(':');
        if (colon == std::string::npos || state != "0A") continue;
        uint32_t number = 0;
        const auto parsed = std::from_chars(local.data() + colon + 1, local.data() + local.size(), number, 16);
        // an inode of 0 cannot be looked up, but the port is taken all the same
        if (parsed.ec == std::errc() && number == port) return std::max<uint64_t>(inode, 1);
    }
    return 0;
}

struct Owner {
    std::string pid, command;
};

// Who holds a socket; empty when it is another user's.
Owner owner_of(const Machine& machine, uint64_t inode) {
    const std::string wanted = "socket:[" + std::to_string(inode) + "]";
    std::error_code error;
    for (fs::directory_iterator it(machine.root + "/proc", error), end; !error && it != end; it.increment(error)) {
        const std::string pid = it->path().filename().string();
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        std::error_code inner;
        for (fs::directory_iterator fd(it->path() / "fd", inner), last; !inner && fd != last; fd.increment(inner)) {
            std::error_code ignored;
            if (fs::read_symlink(fd->path(), ignored) != wanted) continue;
            std::string command = read_small_file((it->path() / "comm").string());
            while (!command.empty() && command.back() == '\n') command.pop_back();
            return {pid, command};
        }
    }
    return {};
}

void check_space(const Machine& machine, const std::string& name, const fs::path& folder, uint64_t least,
                 FindingStatus status, const std::string& variable, Findings& findings) {
    const auto space = machine.disk_free(folder);
    if (!space) return;
    const bool enough = *space >= least;
    findings.push_back({name, enough ? FindingStatus::ok : status,
                        folder.string() + ": " + bytes_text(*space) + " free" +
                            (enough ? "" : ", expected at least " + bytes_text(least)),
                        enough ? "" : "free some space, or choose another folder with " + variable + "=DIR"});
}

}  // namespace

void check_memory(const Machine& machine, Findings& findings) {
    const HostMemory memory = read_host_memory(machine.root);
    if (memory.total == 0) {
        findings.push_back({"memory", FindingStatus::warning, "/proc/meminfo cannot be read", "mount /proc"});
    } else {
        const std::string text = bytes_text(memory.available) + " of " + bytes_text(memory.total) + " available";
        if (memory.limited) {
            findings.push_back({"memory", FindingStatus::warning,
                                text + ", limited by a control group (container or service)",
                                "raise the limit: docker run --memory, MemoryMax= of the service"});
        } else {
            findings.push_back({"memory", FindingStatus::ok, text, ""});
        }
    }
    findings.push_back({"locked memory", FindingStatus::ok,
                        "limit " + limit_text(machine.memory_lock_limit) + " (matters only with --load-mode mlock)",
                        ""});
    constexpr uint64_t least_files = 1024;
    const bool enough = machine.open_files_limit >= least_files;
    findings.push_back(
        {"open files", enough ? FindingStatus::ok : FindingStatus::warning,
         "limit " + (machine.open_files_limit == UINT64_MAX ? "none" : std::to_string(machine.open_files_limit)),
         enough ? "" : "ulimit -n 4096, or LimitNOFILE=4096 of the service: each client takes two"});
}

void check_processor(const Machine& machine, Findings& findings) {
    std::istringstream lines(read_small_file(machine.root + "/proc/cpuinfo"));
    std::string flags, model;
    size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        if (line.starts_with("processor")) count++;
        if (line.starts_with("flags") || line.starts_with("Features")) flags = " " + line.substr(colon + 1) + " ";
        if (line.starts_with("model name") && model.empty()) model = line.substr(std::min(colon + 2, line.size()));
    }
    if (flags.empty()) return;
    std::string known;
    for (const char* flag : {"avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd",
                             "asimddp", "i8mm", "sve"}) {
        if (flags.find(std::string(" ") + flag + " ") != std::string::npos)
            known += (known.empty() ? "" : " ") + std::string(flag);
    }
    const bool fast = flags.find(" avx2 ") != std::string::npos || flags.find(" asimd ") != std::string::npos;
    findings.push_back(
        {"processor", fast ? FindingStatus::ok : FindingStatus::warning,
         (model.empty() ? "" : model + ", ") + std::to_string(count) + " threads, " +
             (known.empty() ? "no vector extension of use" : known),
         fast ? ""
              : "the CPU will be slow: use a GPU, or a virtual machine that passes on the host's CPU (cpu: host)"});
}

void check_folders(const Machine& machine, Findings& findings) {
    const auto cache = machine.cache_folder();
    if (!cache.ok()) {
        const Error& error = cache.error();
        findings.push_back({"cache folder", FindingStatus::problem, error.message(),
                            error.remedy.empty() ? "choose another folder with ONEBIT_CACHE=DIR" : error.remedy});
    } else {
        struct stat info {};
        const bool there = ::stat(cache->c_str(), &info) == 0;
        if (there && (info.st_mode & 022) != 0) {
            findings.push_back({"cache folder", FindingStatus::problem,
                                cache->string() + " may be written by other users", "chmod 700 " + cache->string()});
        } else if (!machine.may_open(cache->string())) {
            findings.push_back({"cache folder", FindingStatus::problem, cache->string() + " may not be written",
                                "sudo chown -R \"$USER\" " + cache->string()});
        } else {
            findings.push_back({"cache folder", FindingStatus::ok, cache->string(), ""});
        }
        check_space(machine, "cache disk", *cache, 512 * MiB, FindingStatus::problem, "ONEBIT_CACHE", findings);
    }
    const auto models = machine.models_folder();
    if (models.ok())
        check_space(machine, "models disk", *models, 8 * GiB, FindingStatus::warning, "ONEBIT_MODELS", findings);
}

void check_port(const Machine& machine, Findings& findings) {
    uint64_t inode = listener(read_small_file(machine.root + "/proc/net/tcp"), machine.port);
    if (inode == 0) inode = listener(read_small_file(machine.root + "/proc/net/tcp6"), machine.port);
    const std::string port = "port " + std::to_string(machine.port);
    if (inode == 0) {
        findings.push_back({port, FindingStatus::ok, "free", ""});
        return;
    }
    const Owner owner = owner_of(machine, inode);
    if (owner.command == "1bit") {
        findings.push_back({port, FindingStatus::ok, "1bit listens there already (process " + owner.pid + ")", ""});
        return;
    }
    findings.push_back(
        {port, FindingStatus::warning,
         "taken by " +
             (owner.pid.empty() ? "a process of another user" : owner.command + " (process " + owner.pid + ")"),
         "1bit serve --port " + std::to_string(machine.port == UINT16_MAX ? machine.port - 1 : machine.port + 1) +
             (owner.pid.empty() ? "" : ", or stop it: kill " + owner.pid)});
}

void check_versions(const Machine& machine, Findings& findings) {
    std::string text = "1bit " + machine.build.version + ", llama.cpp " + machine.build.llama_version + ", built by " +
                       machine.build.compiler + ", Vulkan " + (machine.build.vulkan ? "on" : "off") + ", CUDA " +
                       (machine.build.cuda ? "on" : "off") + "; kernel " + machine.kernel;
    std::string nvidia = read_small_file(machine.root + "/sys/module/nvidia/version");
    while (!nvidia.empty() && nvidia.back() == '\n') nvidia.pop_back();
    if (!nvidia.empty()) text += "; NVIDIA driver " + nvidia;
    std::istringstream lines(read_small_file(machine.root + "/etc/os-release"));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("PRETTY_NAME=")) continue;
        line.erase(0, line.find('=') + 1);
        std::erase(line, '"');
        text += "; " + line;
    }
    if (in_container(machine)) text += "; in a container";
    findings.push_back({"versions", FindingStatus::ok, text, ""});
}

}  // namespace onebit
