#include "engine/direct_stream.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/next_function.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
using Send = ssize_t (*)(int, const void*, size_t, int);
using Receive = ssize_t (*)(int, void*, size_t, int);
using Shutdown = int (*)(int, int);

std::atomic<StreamTable*> table_in_use{nullptr};

// The stream that this thread sends.
struct Stream {
    int connection = -1;  // to the supervisor, not owned; -1: there is no stream
    int client = -1;      // owned; -1: not offered yet, or gone
    bool direct = false;  // chunks go to the client
    StreamLoan loan;
    uint64_t relayed = 0;  // payload bytes that went over the connection
};
thread_local Stream stream;

void forget_stream() {
    if (stream.client >= 0) ::close(stream.client);
    stream = {};
}

struct ThreadEnd {
    ~ThreadEnd() { forget_stream(); }
};

// libc's, or a sanitizer's.
template <typename Function>
Function next(std::atomic<Function>& found, const char* name) {
    Function function = found.load(std::memory_order_relaxed);
    if (function == nullptr) {
        function = next_function<Function>(name);
        found.store(function, std::memory_order_relaxed);
    }
    return function;
}
ssize_t next_send(int fd, std::string_view bytes, int flags) {
    static constinit std::atomic<Send> found{nullptr};
    return next(found, "send")(fd, bytes.data(), bytes.size(), flags);
}
ssize_t next_recv(int fd, void* data, size_t size, int flags) {
    static constinit std::atomic<Receive> found{nullptr};
    return next(found, "recv")(fd, data, size, flags);
}

bool is_stream_head(std::string_view bytes) {
    return bytes.starts_with("HTTP/1.1 200 ") && bytes.ends_with("\r\n\r\n") &&
           bytes.find("\r\nTransfer-Encoding: chunked\r\n") != std::string_view::npos &&
           bytes.find("\r\nContent-Type: text/event-stream") != std::string_view::npos;
}

bool is_unix_socket(int fd) {
    int domain = 0;
    socklen_t size = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// The payload, if the bytes are one whole chunk; empty for all else, the last chunk included.
std::string_view chunk_payload(std::string_view bytes) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), size, 16);
    const auto digits = static_cast<size_t>(end - bytes.data());
    if (error != std::errc() || size >= bytes.size() || bytes.size() - size != digits + 4) return {};
    if (bytes.substr(digits, 2) != "\r\n" || !bytes.ends_with("\r\n")) return {};
    return bytes.substr(digits + 2, size);
}

// Takes the offer from the connection if it has come. True: something was taken from it.
bool take_offer(StreamTable& table) {
    uint32_t magic = 0;
    // a look first: what other clients send is not ours to take
    if (next_recv(stream.connection, &magic, sizeof magic, MSG_PEEK | MSG_DONTWAIT) != sizeof magic ||
        magic != StreamOffer::kMagic)
        return false;
    StreamOffer offer{0, 0, 0};
    iovec part{&offer, sizeof offer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(stream.connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return false;
    int client = -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof client))
        std::memcpy(&client, CMSG_DATA(header), sizeof client);
    const StreamLoan loan{offer.slot, offer.generation};
    const bool good = got == sizeof offer && client >= 0 && stream.client < 0 && is_lent(table, loan);
    if (good) {
        static thread_local ThreadEnd closes_it;
        static_cast<void>(closes_it);
        stream.client = client;
        stream.loan = loan;
    } else if (client >= 0) {
        ::close(client);
    }
    return true;
}

// False: the supervisor is gone, or the client took nothing for too long; *late tells the latter.
bool wait_for_client(Clock::time_point until, bool* late) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        *late = left <= 0;
        if (*late) return false;
        pollfd entries[2] = {{stream.client, POLLOUT, 0}, {stream.connection, POLLRDHUP, 0}};
        const int ready = ::poll(entries, 2, static_cast<int>(left));
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (entries[1].revents != 0) return false;
        return true;
    }
}

// How many of the bytes the client's socket took.
size_t write_to_client(std::string_view bytes, StreamSlot& slot) {
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t sent = next_send(stream.client, bytes.substr(done), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            done += static_cast<size_t>(sent);
            continue;
        }
        if (sent < 0 && errno == EINTR) continue;
        const bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        bool late = false;
        if (full && wait_for_client(Clock::now() + kClientWriteLimit, &late)) continue;
        if (!full || late) slot.client_failed = 1;
        break;
    }
    return done;
}

void count_chunk(StreamSlot& slot, std::string_view chunk, std::string_view payload) {
    const int64_t now = Clock::now().time_since_epoch().count();
    if (slot.chunks.load(std::memory_order_relaxed) == 0) slot.first = now;
    slot.last = now;
    slot.payload += payload.size();
    slot.chunks += 1;
    slot.end = slot.writing_end.load(std::memory_order_relaxed);
    slot.framed += chunk.size();  // last: who finds it counted finds all of it
}

bool send_to_client(StreamTable& table, std::string_view chunk, std::string_view payload) {
    for (int tries = 0; stream.client >= 0; tries++) {
        const EngineTurn turn = engine_begins(table, stream.loan);
        if (turn == EngineTurn::over) break;
        if (turn == EngineTurn::wait) {
            // the supervisor writes a few bytes
            if (tries < 20)
                ::sched_yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            continue;
        }
        StreamSlot& slot = table.slots[stream.loan.slot];
        const uint16_t before = slot.end.load(std::memory_order_relaxed);
        slot.writing_end = StreamSlot::end_of(
            payload.size() > 1 ? payload[payload.size() - 2] : static_cast<char>(before & 0xff), payload.back());
        slot.writing = static_cast<uint32_t>(std::min<size_t>(chunk.size(), UINT32_MAX));
        const size_t done = write_to_client(chunk, slot);
        if (done == chunk.size()) count_chunk(slot, chunk, payload);
        engine_ends(table, stream.loan, done == 0 || done == chunk.size());
        if (done == chunk.size()) return true;
        break;
    }
    if (stream.client >= 0) ::close(std::exchange(stream.client, -1));
    errno = EPIPE;
    return false;
}

ssize_t send_of_stream(StreamTable& table, std::string_view bytes, int flags) {
    const std::string_view payload = chunk_payload(bytes);
    if (payload.empty()) {
        const int connection = stream.connection;
        forget_stream();
        return next_send(connection, bytes, flags);
    }
    if (!stream.direct && stream.client < 0) take_offer(table);
    if (!stream.direct && stream.client >= 0)
        stream.direct = table.slots[stream.loan.slot].relayed.load(std::memory_order_acquire) == stream.relayed;
    if (stream.direct) return send_to_client(table, bytes, payload) ? static_cast<ssize_t>(bytes.size()) : -1;
    const ssize_t sent = next_send(stream.connection, bytes, flags);
    // of a chunk that went in parts the rest would look like no chunk
    if (sent == static_cast<ssize_t>(bytes.size()))
        stream.relayed += payload.size();
    else
        forget_stream();
    return sent;
}

ssize_t send_in_engine(StreamTable& table, int fd, std::string_view bytes, int flags) {
    const bool head = is_stream_head(bytes);
    if (fd >= 0 && fd == stream.connection && !head) return send_of_stream(table, bytes, flags);
    const ssize_t sent = next_send(fd, bytes, flags);
    if (head && sent == static_cast<ssize_t>(bytes.size()) && is_unix_socket(fd)) {
        forget_stream();
        stream.connection = fd;
    }
    return sent;
}

}  // namespace

void install_direct_streams(StreamTable* table) {
    table_in_use = table;
    if (table != nullptr) table->taken_up = 1;
}

}  // namespace onebit

extern "C" ssize_t send(int fd, const void* data, size_t size, int flags) {
    const std::string_view bytes(static_cast<const char*>(data), size);
    onebit::StreamTable* table = onebit::table_in_use.load(std::memory_order_acquire);
    return table == nullptr ? onebit::next_send(fd, bytes, flags) : onebit::send_in_engine(*table, fd, bytes, flags);
}

// cpp-httplib peeks to learn whether its peer is there. An offer that lies unread would answer for a peer that is gone.
extern "C" ssize_t recv(int fd, void* data, size_t size, int flags) {
    if ((flags & MSG_PEEK) != 0 && fd >= 0 && fd == onebit::stream.connection && size > 0) {
        onebit::StreamTable* table = onebit::table_in_use.load(std::memory_order_acquire);
        if (table != nullptr && onebit::take_offer(*table)) {
            *static_cast<char*>(data) = 0;
            return 1;
        }
    }
    return onebit::next_recv(fd, data, size, flags);
}

extern "C" int shutdown(int fd, int how) noexcept {
    if (fd >= 0 && fd == onebit::stream.connection) onebit::forget_stream();
    static constinit std::atomic<onebit::Shutdown> found{nullptr};
    return onebit::next(found, "shutdown")(fd, how);
}
