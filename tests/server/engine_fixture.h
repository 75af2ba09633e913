// What tests of engines share: a runtime folder of their own, waiting on conditions, and requests over a Unix socket.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "server/supervisor/engine_process.h"

namespace onebit {

class RuntimeFolder {
public:
    RuntimeFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "1bit-test-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~RuntimeFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    RuntimeFolder(const RuntimeFolder&) = delete;
    RuntimeFolder& operator=(const RuntimeFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

constexpr std::chrono::minutes kGenerous{2};

// Waits until the condition holds; false after a limit that only a failure reaches.
inline bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kGenerous) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

// A connection on which a request has been sent; unset when nobody listens.
inline UniqueFd send_request(const std::filesystem::path& socket, const std::string& request) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
        return {};
    return fd;
}

inline std::string read_all(const UniqueFd& fd) {
    std::string text;
    char buffer[4096];
    ssize_t size;
    while ((size = ::read(fd.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(size));
    return text;
}

inline std::string get_request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

inline std::string post_request(const std::string& path, const std::string& json) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(json.size()) + "\r\n\r\n" + json;
}

}  // namespace onebit
