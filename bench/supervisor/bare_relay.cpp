// The least that any relay between a TCP port and a server on a Unix socket can do: for each connection one thread, for
// each event one recv and one send. Measured in turns with the supervisor, whose cost cannot be below this one's.
//
// bare-relay PORT SOCKET        serves until it is ended; one request a connection, Content-Length or no body
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace {

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
}

bool read_request(int client, std::string& request) {
    char buffer[16384];
    for (;;) {
        const size_t end = request.find("\r\n\r\n");
        if (end != std::string::npos) {
            constexpr std::string_view name = "Content-Length: ";
            const size_t at = request.find(name);
            const size_t length = at < end ? std::strtoul(request.c_str() + at + name.size(), nullptr, 10) : size_t{0};
            if (request.size() >= end + 4 + length) return true;
        }
        const ssize_t got = recv(client, buffer, sizeof buffer, 0);
        if (got <= 0) return false;
        request.append(buffer, static_cast<size_t>(got));
    }
}

void relay(int client, const sockaddr_un& address) {
    const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string request;
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        read_request(client, request) && send_all(server, request)) {
        char buffer[16384];
        for (;;) {
            const ssize_t got = recv(server, buffer, sizeof buffer, 0);
            if (got <= 0 || !send_all(client, {buffer, static_cast<size_t>(got)})) break;
            // the last chunk, which llama.cpp's server writes by itself
            if (std::string_view(buffer, static_cast<size_t>(got)).ends_with("0\r\n\r\n")) break;
        }
    }
    close(server);
    close(client);
}

}  // namespace

int main(int argc, char** argv) {
    sockaddr_un server{};
    server.sun_family = AF_UNIX;
    if (argc != 3 || std::strlen(argv[2]) >= sizeof server.sun_path) {
        std::fprintf(stderr, "usage: bare-relay PORT SOCKET\n");
        return 2;
    }
    std::strcpy(server.sun_path, argv[2]);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[1])));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 64) != 0) {
        std::perror("bare-relay");
        return 1;
    }
    for (;;) {
        const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) continue;
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        std::thread(relay, client, std::cref(server)).detach();
    }
}
