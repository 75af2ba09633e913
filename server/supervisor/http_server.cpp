#include "server/supervisor/http_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "server/supervisor/connection_queue.h"
#include "server/supervisor/http_head.h"
#include "server/supervisor/port_owner.h"
#include "server/supervisor/responses.h"

namespace onebit {
namespace {

constexpr int kBacklog = 4096;  // a burst beyond it waits for TCP's retransmissions, seconds
constexpr auto kIdleTimeout = std::chrono::seconds(30);
constexpr auto kIdleTimeoutCrowded = std::chrono::seconds(1);
constexpr auto kHeadTimeoutCrowded = std::chrono::seconds(5);

thread_local ClientStream* current_stream = nullptr;

void set(const UniqueFd& event) {
    const uint64_t one = 1;
    if (::write(event.get(), &one, sizeof(one)) < 0) return;  // already set
}

// Lets the client read the response before a reset: closing with unread bytes would throw it away.
void close_gently(int socket) {
    ::shutdown(socket, SHUT_WR);
    char scratch[16384];
    size_t total = 0;
    auto until = ClientStream::Clock::now() + std::chrono::milliseconds(500);
    while (total < (4u << 20)) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - ClientStream::Clock::now()).count();
        pollfd entry{socket, POLLIN, 0};
        if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) break;
        ssize_t got = ::recv(socket, scratch, sizeof(scratch), MSG_DONTWAIT);
        if (got <= 0) break;
        total += static_cast<size_t>(got);
    }
    ::close(socket);
}

void write_refusal(ClientStream& stream, const HeadFault& fault, const std::string& method) {
    const std::string body = error_body(fault.status, error_type(fault.status), fault.message);
    std::string text = "HTTP/1.1 " + std::to_string(fault.status) + " " + httplib::status_message(fault.status) +
                       "\r\nServer: 1bit\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n";
    if (fault.allow) text += "Allow: " + std::string(kMethods) + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (method != "HEAD") text += body;
    stream.write(text.data(), text.size());
}

}  // namespace

HttpServer::HttpServer(size_t max_connections)
    : max_connections_(max_connections),
      drain_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      end_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    new_task_queue = [this] { return new ConnectionQueue(max_connections_); };
    set_tcp_nodelay(true);
    set_read_timeout(std::chrono::seconds(60));
    set_write_timeout(std::chrono::seconds(120));
    set_keep_alive_timeout(kIdleTimeout.count());
    set_payload_max_length(std::numeric_limits<size_t>::max() / 2);  // handlers keep to the configured limit
    // after a refusal the parser may stand anywhere in what follows: never take that for a next request
    set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
        if (current_stream && response.get_header_value("Connection") == "close") current_stream->set_last();
    });
    // without SO_REUSEPORT: two servers on one port would share its connections in silence
    set_socket_options([](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
}

HttpServer::~HttpServer() = default;

ClientStream* HttpServer::current() { return current_stream; }

Result<uint16_t> HttpServer::bind(const std::string& host, uint16_t port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (int code = getaddrinfo(host.c_str(), nullptr, &hints, &found); code != 0) {
        return Error{ErrorCode::usage, "host '" + host + "'", "an address or name of this machine", gai_strerror(code),
                     "use 127.0.0.1 for this machine only, 0.0.0.0 for all"};
    }
    freeaddrinfo(found);
    errno = 0;
    if (port == 0) {
        int bound = bind_to_any_port(host);
        if (bound > 0) {
            ::listen(svr_sock_, kBacklog);
            return static_cast<uint16_t>(bound);
        }
    } else if (bind_to_port(host, port)) {
        ::listen(svr_sock_, kBacklog);
        return port;
    }
    int code = errno;
    std::string address = host + ":" + std::to_string(port);
    std::string owner = port ? port_owner(port) : "";
    if (!owner.empty() || code == EADDRINUSE) {
        return Error{ErrorCode::conflict, "address " + address, "a free port",
                     "one taken by " + (owner.empty() ? std::string("another process") : owner),
                     "stop it or choose another with --port"};
    }
    if (code == EACCES)
        return Error{ErrorCode::io, "address " + address, "a port this user may open", std::strerror(code),
                     "choose a port from 1024 up with --port"};
    return Error{ErrorCode::io, "address " + address, "an address of this machine",
                 code ? std::strerror(code) : "one that cannot be opened", "choose another with --host"};
}

void HttpServer::drain() { set(drain_event_); }

void HttpServer::end_requests() { set(end_event_); }

void HttpServer::abort_connections() {
    std::lock_guard lock(mutex_);
    for (int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

size_t HttpServer::connections() const {
    std::lock_guard lock(mutex_);
    return sockets_.size();
}

bool HttpServer::crowded() const { return connections() * 4 > max_connections_ * 3; }

std::chrono::milliseconds HttpServer::read_timeout() const {
    return read_timeout_ ? read_timeout_() : std::chrono::milliseconds(60000);
}

// Clients that send a byte now and then must not keep all others out for longer.
std::chrono::milliseconds HttpServer::head_timeout() const {
    return crowded() ? std::min<std::chrono::milliseconds>(kHeadTimeoutCrowded, read_timeout()) : read_timeout();
}

bool HttpServer::wait_for_request(ClientStream& stream, bool first) {
    if (stream.has_buffered()) return true;
    std::chrono::milliseconds limit = crowded() ? kIdleTimeoutCrowded : kIdleTimeout;
    if (first) limit = head_timeout();
    auto until = ClientStream::Clock::now() + limit;
    bool draining = false;
    for (;;) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ClientStream::Clock::now()).count();
        if (left <= 0) return false;
        // a new connection still gets its answer, that the server is stopping, until all are to end
        pollfd entries[2] = {{stream.socket(), POLLIN, 0}, {(draining ? end_event_ : drain_event_).get(), POLLIN, 0}};
        int ready = ::poll(entries, 2, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        if (entries[0].revents) return true;
        if (!first || draining) return false;
        draining = true;
        until = std::min(until, ClientStream::Clock::now() + std::chrono::seconds(1));
    }
}

bool HttpServer::take_head(ClientStream& stream, const std::string& client) {
    HeadReader reader;
    HeadFault fault;
    for (;;) {
        const HeadReader::State state = reader.look(stream.buffered());
        if (state == HeadReader::State::complete) {
            if (auto head = reader.rewritten(stream.buffered())) stream.replace_buffered(reader.length(), *head);
            return true;
        }
        if (state == HeadReader::State::fault) {
            fault = reader.fault();
            break;
        }
        const ssize_t got = stream.fill();
        if (got > 0) continue;
        if (stream.buffered().empty()) return false;
        if (got == 0)
            fault = {400, "request: ended inside its head"};
        else if (stream.ended())
            fault = {503, std::string(kStopping)};
        else if (stream.timed_out())
            fault = {408, "request: its head did not arrive within the read time-out"};
        else
            return false;
        break;
    }
    write_refusal(stream, fault, reader.method());
    if (head_refused_) head_refused_(fault.status, reader.method(), reader.target(), client);
    return false;
}

bool HttpServer::process_and_close_socket(socket_t socket) {
    {
        std::lock_guard lock(mutex_);
        sockets_.insert(socket);
    }
    ++answering_;
    bool served = false;
    {
        ClientStream stream(socket, end_event_.get());
        std::string remote, local;
        int remote_port = 0, local_port = 0;
        stream.get_remote_ip_and_port(remote, remote_port);
        stream.get_local_ip_and_port(local, local_port);
        current_stream = &stream;
        served = serve_guarded([&] {
            bool first = true, result = false;
            // one that was accepted before the end is answered after it too
            while (first || svr_sock_ != INVALID_SOCKET) {
                if (!first) --answering_;
                const bool has_come = wait_for_request(stream, first);
                if (!first) ++answering_;
                first = false;
                if (!has_come) break;
                const auto begun = ClientStream::Clock::now();
                stream.begin_request(head_timeout());
                if (!take_head(stream, remote)) break;
                stream.set_deadline(begun + read_timeout());
                bool closed = false;
                result = process_request(stream, remote, remote_port, local, local_port, false, closed, nullptr);
                if (request_end_) request_end_();
                if (!result || closed || stream.last() || !stream.is_peer_alive()) break;
            }
            return result;
        });
        if (!served && request_end_) request_end_();
        current_stream = nullptr;
    }
    {
        std::lock_guard lock(mutex_);
        sockets_.erase(socket);
    }
    --answering_;
    close_gently(socket);
    return served;
}

}  // namespace onebit
