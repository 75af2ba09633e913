// Asks a server on a Unix socket one question without ever waiting: the caller polls the descriptor.
#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.h"

namespace onebit {

// Not thread-safe.
class HttpProbe {
public:
    // Connects and sends "GET path". false when nobody listens (yet) or the path is too long for a socket.
    bool start(const std::filesystem::path& socket, const std::string& path);
    void stop() { fd_.reset(), received_.clear(); }

    bool running() const { return static_cast<bool>(fd_); }
    int fd() const { return fd_.get(); }  // -1 when not running; poll it for reading

    // Reads what is there. Returns the HTTP status once it is known, -1 when the connection failed, 0 when not yet.
    // The probe has stopped when it returns anything but 0.
    int advance();

private:
    UniqueFd fd_;
    std::string received_;
};

// The longest path that fits into a socket's address, in bytes.
size_t longest_socket_path();

}  // namespace onebit
