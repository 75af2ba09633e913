#include "server/supervisor/stream_handover.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <span>
#include <thread>

namespace onebit {
namespace {

constexpr auto kWriterLimit = std::chrono::milliseconds(500);  // for an engine that writes while the supervisor ends

// All bytes that were ever written to a TCP socket, sent or not; unset where the kernel does not tell.
std::optional<uint64_t> bytes_taken(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
    if (size < offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans) return {};
    return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

uint64_t framed_size(uint64_t payload) {
    uint64_t digits = 1;
    for (uint64_t rest = payload >> 4; rest > 0; rest >>= 4) digits++;
    return digits + 2 + payload + 2;
}

}  // namespace

StreamHandover::~StreamHandover() {
    if (loan_) return_slot(*table_, *loan_);
}

void StreamHandover::offer(EngineExchange& exchange) {
    if (offered_ || table_ == nullptr || client_ < 0) return;
    offered_ = true;
    taken_before_ = bytes_taken(client_);
    framed_ = 0;
    loan_ = lend_slot(*table_);
    if (!loan_) return;
    const StreamOffer message{StreamOffer::kMagic, loan_->slot, loan_->generation};
    if (exchange.send_descriptor(std::as_bytes(std::span(&message, 1)), client_)) return;
    return_slot(*table_, *loan_);
    loan_.reset();
}

void StreamHandover::wrote(size_t bytes, bool engine) {
    framed_ += framed_size(bytes);
    if (loan_ && engine) slot().relayed.fetch_add(bytes, std::memory_order_release);
}

bool StreamHandover::begin_words() {
    if (!loan_) return true;
    pollfd entry{client_, POLLOUT, 0};
    return ::poll(&entry, 1, 0) > 0 && supervisor_begins(*table_, *loan_);
}

void StreamHandover::end_words() {
    if (loan_) supervisor_ends(*table_, *loan_);
}

// Whether a chunk that a dead engine was writing is with the client whole or not at all.
bool StreamHandover::finished_chunk() {
    const std::optional<uint64_t> taken = bytes_taken(client_);
    if (!taken || !taken_before_) return false;
    StreamSlot& chunk = slot();
    const uint64_t begun = *taken - *taken_before_ - framed_ - chunk.framed.load();
    if (begun == 0) return true;
    if (begun != chunk.writing.load()) return false;
    chunk.end = chunk.writing_end.load();
    chunk.chunks += 1;
    return true;
}

bool StreamHandover::take_over(bool engine_gone) {
    if (!loan_ || closed_) return true;
    const auto until = Clock::now() + kWriterLimit;
    for (;;) {
        const SlotState found = close_slot(*table_, *loan_);
        closed_ = found == SlotState::idle || (found == SlotState::engine && engine_gone && finished_chunk());
        if (closed_) return true;
        if (found != SlotState::engine || engine_gone || Clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

StreamHandover::Direct StreamHandover::direct() const {
    Direct what;
    if (!loan_) return what;
    const StreamSlot& from = slot();
    what.failed = from.client_failed.load() != 0;
    what.chunks = from.chunks.load();
    if (what.chunks == 0) return what;
    what.payload = from.payload.load();
    what.first = Clock::time_point(Clock::duration(from.first.load()));
    what.last = Clock::time_point(Clock::duration(from.last.load()));
    what.at_event_end = from.end.load() == StreamSlot::kEventEnd;
    return what;
}

}  // namespace onebit
