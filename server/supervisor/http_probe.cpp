#include "server/supervisor/http_probe.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace onebit {

size_t longest_socket_path() { return sizeof(sockaddr_un{}.sun_path) - 1; }

bool HttpProbe::start(const std::filesystem::path& socket, const std::string& path) {
    stop();
    const std::string& name = socket.native();
    if (name.empty() || name.size() > longest_socket_path()) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return false;
    // a Unix socket connects at once or, when its queue is full, not now
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const ssize_t sent = ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request.size())) return false;
    fd_ = std::move(fd);
    return true;
}

int HttpProbe::advance() {
    if (!fd_) return -1;
    std::array<char, 512> buffer;
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (size > 0) received_.append(buffer.data(), static_cast<size_t>(size));
    constexpr std::string_view kStart = "HTTP/1.1 ";
    int status = -1;
    if (received_.size() >= kStart.size() + 3 && received_.starts_with(kStart)) {
        std::from_chars(received_.data() + kStart.size(), received_.data() + kStart.size() + 3, status);
    } else if (size > 0 && received_.size() < kStart.size() + 3) {
        return 0;
    }
    stop();
    return status > 0 ? status : -1;
}

}  // namespace onebit
