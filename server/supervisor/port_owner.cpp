#include "server/supervisor/port_owner.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace onebit {
namespace fs = std::filesystem;
namespace {

struct Listener {
    std::string inode, uid;
};

Listener find_listener(uint16_t port, const std::string& table) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
        fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
        size_t colon = local.rfind(':');
        if (state != "0A" || colon == std::string::npos) continue;  // 0A: listening
        if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port) return {inode, uid};
    }
    return {};
}

}  // namespace

std::string port_owner(uint16_t port, const std::string& proc) {
    Listener listener = find_listener(port, proc + "/net/tcp");
    if (listener.inode.empty()) listener = find_listener(port, proc + "/net/tcp6");
    if (listener.inode.empty()) return {};
    std::string wanted = "socket:[" + listener.inode + "]";
    std::error_code ignored;
    for (const auto& process : fs::directory_iterator(proc, ignored)) {
        std::string pid = process.path().filename();
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        std::error_code unreadable;
        for (const auto& entry : fs::directory_iterator(process.path() / "fd", unreadable)) {
            std::error_code gone;
            if (fs::read_symlink(entry.path(), gone) != wanted || gone) continue;
            std::ifstream name_file(process.path() / "comm");
            std::string name;
            std::getline(name_file, name);
            return printable(name.empty() ? "a process" : name) + " (pid " + pid + ")";
        }
    }
    return "a process of user " + listener.uid;
}

}  // namespace onebit
