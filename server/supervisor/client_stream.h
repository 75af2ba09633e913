// One accepted connection: buffered reads with a deadline for a whole request, unbuffered writes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cpp-httplib/httplib.h>

namespace onebit {

// Does not own its descriptors. One thread uses it; shutdown(2) of the socket by another thread ends every wait.
class ClientStream final : public httplib::Stream {
public:
    using Clock = std::chrono::steady_clock;

    // end: readable from when nothing more of a request is waited for; -1 for never.
    explicit ClientStream(int socket, int end = -1);

    // A request's head and body must arrive before now + limit; each 64 KiB that come add a second, so that a slow
    // line may upload much, but a client that trickles bytes cannot hold a thread.
    void begin_request(std::chrono::milliseconds limit);
    // Of what is still to come, in place of begin_request()'s.
    void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }
    bool timed_out() const { return timed_out_; }
    // A read failed because `end` became readable.
    bool ended() const { return ended_; }
    // No read or write for this long while the response is written ends the connection.
    void set_write_timeout(std::chrono::milliseconds limit) { write_timeout_ = limit; }
    bool has_buffered() const { return begin_ < end_; }
    std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }
    // Reads more behind what is buffered. As read(): 0 at the end of the connection, negative for a failure.
    ssize_t fill();
    // Puts other bytes in the place of the first ones that are buffered.
    void replace_buffered(size_t count, std::string_view with);
    // The response being written is the connection's last.
    void set_last() { last_ = true; }
    bool last() const { return last_; }

    bool is_readable() const override { return has_buffered(); }
    bool wait_readable() const override;
    bool wait_writable() const override { return !broken_; }  // write() waits by itself
    bool is_peer_alive() const override { return !broken_; }
    ssize_t read(char* data, size_t size) override;
    ssize_t write(const char* data, size_t size) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    socket_t socket() const override { return socket_; }
    time_t duration() const override;
    const char* buffered_data(size_t& size) const override;
    void consume_buffered(size_t size) override { begin_ += size; }

private:
    enum class Wait { ready, late, ended };
    Wait wait(short events, Clock::time_point until) const;
    ssize_t receive(char* target, size_t room);

    int socket_, end_event_;
    std::vector<char> buffer_;
    size_t begin_ = 0, end_ = 0;
    Clock::time_point started_, deadline_;
    std::chrono::milliseconds write_timeout_{120000};
    uint64_t received_ = 0;
    bool broken_ = false, timed_out_ = false, ended_ = false, last_ = false;
};

// The peer has closed or reset the connection. A peek; never blocks.
bool peer_gone(int socket);

}  // namespace onebit
