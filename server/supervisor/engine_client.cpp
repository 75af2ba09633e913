#include "server/supervisor/engine_client.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace onebit {
namespace {

constexpr size_t kMaxHead = 256 << 10;
constexpr size_t kMaxDocument = 16u << 20;
using Clock = std::chrono::steady_clock;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string_view EngineResponseHead::header(std::string_view name) const {
    for (const auto& [key, value] : headers)
        if (same(key, name)) return value;
    return {};
}

EngineIo EngineExchange::wait_for(short events, Wait wait) {
    auto until = wait ? Clock::now() + *wait : Clock::time_point::max();
    for (;;) {
        int limit = -1;
        if (wait)
            limit = static_cast<int>(std::clamp<int64_t>(
                std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0, 1 << 30));
        pollfd entries[3] = {{engine_.get(), events, 0}, {client_, POLLRDHUP, 0}, {end_event_, POLLIN, 0}};
        int ready = ::poll(entries, 3, limit);
        if (ready < 0 && errno == EINTR) continue;
        if (ready < 0) return EngineIo::engine_gone;
        if (ready == 0) return EngineIo::timeout;
        // first: an engine that never pauses must not keep the server from its end
        if (entries[2].revents) return EngineIo::stopping;
        if (entries[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) return EngineIo::client_gone;
        if (entries[0].revents) return EngineIo::ok;
    }
}

EngineIo EngineExchange::send(const std::filesystem::path& socket, std::string_view head, std::string_view body) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& path = socket.native();
    if (path.size() >= sizeof(address.sun_path)) return EngineIo::engine_gone;
    std::memcpy(address.sun_path, path.data(), path.size());
    engine_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!engine_) return EngineIo::engine_gone;
    // a blocking connect waits while the engine's backlog is full
    while (::connect(engine_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
        if (errno == EINTR) continue;
        return EngineIo::engine_gone;
    }
    iovec parts[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t sent = ::sendmsg(engine_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (EngineIo result = wait_for(POLLOUT, {}); result != EngineIo::ok) return result;
            continue;
        }
        // an engine that refuses early has sent its answer before it closed: read it
        if (sent < 0) return errno == EPIPE || errno == ECONNRESET ? EngineIo::ok : EngineIo::engine_gone;
        for (iovec& part : parts) {
            size_t step = std::min(part.iov_len, static_cast<size_t>(sent));
            part.iov_base = static_cast<char*>(part.iov_base) + step;
            part.iov_len -= step;
            sent -= static_cast<ssize_t>(step);
        }
    }
    return EngineIo::ok;
}

bool EngineExchange::send_descriptor(std::span<const std::byte> bytes, int descriptor) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    ssize_t sent = -1;
    do sent = ::sendmsg(engine_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes.size());
}

EngineIo EngineExchange::fill(Wait wait) {
    begin_ = end_ = 0;
    // a read that did not fill the buffer took all there was: the next event is waited for, not tried for
    if (drained_)
        if (EngineIo result = wait_for(POLLIN, wait); result != EngineIo::ok) return result;
    for (;;) {
        ssize_t got = ::recv(engine_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        if (got > 0) {
            end_ = static_cast<size_t>(got);
            drained_ = end_ < buffer_.size();
            return EngineIo::ok;
        }
        if (got == 0) return EngineIo::engine_gone;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return EngineIo::engine_gone;
        if (EngineIo result = wait_for(POLLIN, wait); result != EngineIo::ok) return result;
    }
}

bool EngineExchange::parse_head(std::string_view text, EngineResponseHead& head) {
    head = {};
    size_t line_end = text.find("\r\n");
    std::string_view line = text.substr(0, line_end);
    if (!line.starts_with("HTTP/1.") || line.size() < 12) return false;
    std::string_view code = line.substr(9, 3);
    if (std::from_chars(code.data(), code.data() + 3, head.status).ptr != code.data() + 3) return false;
    if (head.status < 100 || head.status > 599) return false;
    while (line_end != std::string_view::npos) {
        text.remove_prefix(line_end + 2);
        line_end = text.find("\r\n");
        line = text.substr(0, line_end);
        if (line.empty()) break;
        size_t colon = line.find(':');
        if (colon == std::string_view::npos || colon == 0) return false;
        std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
        if (same(name, "transfer-encoding") && same(value, "chunked")) head.chunked = true;
        if (same(name, "content-length")) {
            uint64_t length = 0;
            auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
            if (error != std::errc() || end != value.data() + value.size()) return false;
            head.length = length;
        }
        head.headers.emplace_back(name, value);
    }
    if (head.chunked) head.length.reset();
    return true;
}

EngineIo EngineExchange::read_head(EngineResponseHead& head, Wait wait) {
    auto until = wait ? Clock::now() + *wait : Clock::time_point::max();
    for (;;) {
        size_t searched = head_text_.size() < 3 ? 0 : head_text_.size() - 3;
        head_text_.append(buffer_.data() + begin_, end_ - begin_);
        begin_ = end_ = 0;
        size_t end = head_text_.find("\r\n\r\n", searched);
        if (end != std::string::npos) {
            if (!parse_head(std::string_view(head_text_).substr(0, end + 2), head)) return EngineIo::malformed;
            std::string rest = head_text_.substr(end + 4);
            head_text_.clear();
            if (rest.size() > buffer_.size()) buffer_.resize(rest.size());
            std::memcpy(buffer_.data(), rest.data(), rest.size());
            end_ = rest.size();
            if (head.status < 200) continue;  // 100 Continue and its like
            chunked_ = head.chunked;
            until_close_ = !head.chunked && !head.length;
            remaining_ = head.length.value_or(0);
            finished_ = !chunked_ && !until_close_ && remaining_ == 0;
            return EngineIo::ok;
        }
        if (head_text_.size() > kMaxHead) return EngineIo::malformed;
        Wait left = wait;
        if (wait)
            left = std::max(std::chrono::milliseconds(0),
                            std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()));
        if (EngineIo result = fill(left); result != EngineIo::ok) return result;
    }
}

// Moves what it can from buffer_ to out; false when the framing is broken.
bool EngineExchange::decode_chunks(std::span<char> out, size_t& count) {
    while (begin_ < end_ && count < out.size() && !finished_) {
        if (chunk_ == Chunk::data) {
            size_t step = static_cast<size_t>(std::min<uint64_t>({remaining_, end_ - begin_, out.size() - count}));
            std::memcpy(out.data() + count, buffer_.data() + begin_, step);
            begin_ += step;
            count += step;
            remaining_ -= step;
            if (remaining_ == 0) chunk_ = Chunk::data_end;
            continue;
        }
        char c = buffer_[begin_++];
        switch (chunk_) {
            case Chunk::size: {
                int digit = c >= '0' && c <= '9'   ? c - '0'
                            : c >= 'a' && c <= 'f' ? c - 'a' + 10
                            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                   : -1;
                if (digit >= 0) {
                    if (++chunk_digits_ > 15) return false;
                    remaining_ = remaining_ * 16 + static_cast<uint64_t>(digit);
                } else if (chunk_digits_ > 0 && c == '\r') {
                    chunk_ = Chunk::size_end;
                } else if (chunk_digits_ > 0 && (c == ';' || c == ' ')) {
                    chunk_ = Chunk::extension;
                } else {
                    return false;
                }
                break;
            }
            case Chunk::extension:
                if (c == '\r') chunk_ = Chunk::size_end;
                break;
            case Chunk::size_end:
                if (c != '\n') return false;
                chunk_digits_ = 0;
                chunk_ = remaining_ ? Chunk::data : Chunk::trailer;
                break;
            case Chunk::data_end:
                if (c != '\r') return false;
                chunk_ = Chunk::data_end_lf;
                break;
            case Chunk::data_end_lf:
                if (c != '\n') return false;
                chunk_ = Chunk::size;
                break;
            case Chunk::trailer:
                chunk_ = c == '\r' ? Chunk::trailer_end : Chunk::trailer_line;
                break;
            case Chunk::trailer_line:
                if (c == '\n') chunk_ = Chunk::trailer;
                break;
            case Chunk::trailer_end:
                if (c != '\n') return false;
                finished_ = true;
                break;
            case Chunk::data:
                break;
        }
    }
    return true;
}

EngineIo EngineExchange::read_body(std::span<char> out, size_t& count, Wait wait) {
    count = 0;
    for (;;) {
        if (chunked_) {
            if (!decode_chunks(out, count)) return EngineIo::malformed;
        } else if (begin_ < end_ && !finished_) {
            uint64_t step = std::min<uint64_t>(end_ - begin_, out.size());
            if (!until_close_) step = std::min(step, remaining_);
            std::memcpy(out.data(), buffer_.data() + begin_, step);
            begin_ += step;
            count = step;
            if (!until_close_ && (remaining_ -= step) == 0) finished_ = true;
        }
        if (count) return EngineIo::ok;
        if (finished_) return EngineIo::end;
        EngineIo result = fill(wait);
        if (result == EngineIo::engine_gone && until_close_) {
            finished_ = true;
            return EngineIo::end;
        }
        if (result != EngineIo::ok) return result;
    }
}

std::optional<std::string> engine_get(const std::filesystem::path& socket, std::string_view path,
                                      std::chrono::milliseconds limit) {
    auto until = Clock::now() + limit;
    auto left = [&] {
        return std::max(std::chrono::milliseconds(0),
                        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()));
    };
    EngineExchange exchange;
    std::string head = "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (exchange.send(socket, head, {}) != EngineIo::ok) return {};
    EngineResponseHead response;
    if (exchange.read_head(response, left()) != EngineIo::ok || response.status != 200) return {};
    std::string text, piece(16384, '\0');
    size_t count = 0;
    for (;;) {
        EngineIo result = exchange.read_body(piece, count, left());
        if (result == EngineIo::end) return text;
        if (result != EngineIo::ok || text.size() + count > kMaxDocument) return {};
        text.append(piece.data(), count);
    }
}

}  // namespace onebit
