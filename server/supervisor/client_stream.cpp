#include "server/supervisor/client_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace onebit {
namespace {

constexpr size_t kBuffer = 16384;
constexpr uint64_t kBytesPerSecond = 64 << 10;

void address_of(const sockaddr_storage& storage, std::string& ip, int& port) {
    char text[INET6_ADDRSTRLEN] = {};
    if (storage.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
        port = ntohs(v4.sin_port);
    } else if (storage.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
        inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
        port = ntohs(v6.sin6_port);
    }
    ip = text;
}

}  // namespace

bool peer_gone(int socket) {
    pollfd entry{socket, POLLRDHUP, 0};
    if (::poll(&entry, 1, 0) < 0) return errno != EINTR;
    return entry.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}

ClientStream::ClientStream(int socket, int end)
    : socket_(socket), end_event_(end), buffer_(kBuffer), started_(Clock::now()) {
    begin_request(std::chrono::seconds(60));
}

void ClientStream::begin_request(std::chrono::milliseconds limit) {
    started_ = Clock::now();
    deadline_ = started_ + limit;
    received_ = 0;
    timed_out_ = false;
}

ClientStream::Wait ClientStream::wait(short events, Clock::time_point until) const {
    for (;;) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return Wait::late;
        // an answer is written to its end: whoever ends requests writes the last words of one
        pollfd entries[2] = {{socket_, events, 0}, {events == POLLIN ? end_event_ : -1, POLLIN, 0}};
        int ready = ::poll(entries, 2, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
        if (ready < 0 && errno != EINTR) return Wait::late;
        if (ready > 0) return entries[0].revents ? Wait::ready : Wait::ended;
    }
}

bool ClientStream::wait_readable() const { return has_buffered() || wait(POLLIN, deadline_) == Wait::ready; }

ssize_t ClientStream::receive(char* target, size_t room) {
    ssize_t got = 0;
    for (;;) {
        // checked here too: a client that always has one more byte ready never waits
        if (Clock::now() >= deadline_) {
            timed_out_ = true;
            return -1;
        }
        got = ::recv(socket_, target, room, MSG_DONTWAIT);
        if (got >= 0) break;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
        if (const Wait waited = wait(POLLIN, deadline_); waited != Wait::ready) {
            (waited == Wait::ended ? ended_ : timed_out_) = true;
            return -1;
        }
    }
    const uint64_t before = received_ / kBytesPerSecond;
    received_ += static_cast<uint64_t>(got);
    deadline_ += std::chrono::seconds(received_ / kBytesPerSecond - before);
    return got;
}

ssize_t ClientStream::read(char* data, size_t size) {
    if (size == 0) return 0;
    if (!has_buffered()) {
        begin_ = end_ = 0;
        // a large read goes straight to its place
        if (size >= buffer_.size()) return receive(data, size);
        const ssize_t got = receive(buffer_.data(), buffer_.size());
        if (got <= 0) return got;
        end_ = static_cast<size_t>(got);
    }
    size_t count = std::min(size, end_ - begin_);
    std::memcpy(data, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
}

ssize_t ClientStream::fill() {
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const ssize_t got = receive(buffer_.data() + end_, buffer_.size() - end_);
    if (got > 0) end_ += static_cast<size_t>(got);
    return got;
}

void ClientStream::replace_buffered(size_t count, std::string_view with) {
    std::vector<char> bytes(with.begin(), with.end());
    bytes.insert(bytes.end(), buffer_.begin() + static_cast<ptrdiff_t>(begin_ + count),
                 buffer_.begin() + static_cast<ptrdiff_t>(end_));
    begin_ = 0;
    end_ = bytes.size();
    if (bytes.size() < kBuffer) bytes.resize(kBuffer);
    buffer_ = std::move(bytes);
}

ssize_t ClientStream::write(const char* data, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t sent = ::send(socket_, data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            done += static_cast<size_t>(sent);
            continue;
        }
        if (sent < 0 && errno == EINTR) continue;
        bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (!full || wait(POLLOUT, Clock::now() + write_timeout_) != Wait::ready) {
            broken_ = true;
            error_ = httplib::Error::Write;
            return -1;
        }
    }
    return static_cast<ssize_t>(size);
}

void ClientStream::get_remote_ip_and_port(std::string& ip, int& port) const {
    sockaddr_storage storage{};
    socklen_t length = sizeof(storage);
    if (getpeername(socket_, reinterpret_cast<sockaddr*>(&storage), &length) == 0) address_of(storage, ip, port);
}

void ClientStream::get_local_ip_and_port(std::string& ip, int& port) const {
    sockaddr_storage storage{};
    socklen_t length = sizeof(storage);
    if (getsockname(socket_, reinterpret_cast<sockaddr*>(&storage), &length) == 0) address_of(storage, ip, port);
}

time_t ClientStream::duration() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_).count();
}

const char* ClientStream::buffered_data(size_t& size) const {
    size = end_ - begin_;
    return size ? buffer_.data() + begin_ : nullptr;
}

}  // namespace onebit
