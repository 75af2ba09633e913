// The listening side: cpp-httplib's parser and writer under a connection loop of our own, which waits without polling,
// keeps pipelined bytes, bounds the time of a request and can end every connection at once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <unordered_set>

#include <cpp-httplib/httplib.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "server/supervisor/client_stream.h"

namespace onebit {

class HttpServer final : public httplib::Server {
public:
    // max_connections: served at the same time, one thread each; more wait in the kernel's and our queue.
    explicit HttpServer(size_t max_connections = 2048);
    ~HttpServer() override;

    // The body of a request that a handler has not asked for stays unread; multipart bodies reach it as they are.
    // Called for every request that parses, on the connection's thread.
    void set_read_timeout_source(std::function<std::chrono::milliseconds()> source) {
        read_timeout_ = std::move(source);
    }
    // Called for a head that was refused before it became a request: its status, and what is known of it.
    void set_head_refused(
        std::function<void(int status, const std::string& method, const std::string& target, const std::string& client)>
            handler) {
        head_refused_ = std::move(handler);
    }
    // Called when a request and its response are through, or failed.
    void set_request_end(std::function<void()> handler) { request_end_ = std::move(handler); }

    // Binds host:port (0: any) and returns the port. Error conflict when it is taken, usage for a bad host, io.
    Result<uint16_t> bind(const std::string& host, uint16_t port);
    // From now on a response closes its connection and idle connections end; running ones go on.
    void drain();
    // From now on end_event() is readable: what still waits for a client's bytes gives up, and whoever waits for an
    // engine ends its answer with an error. A request of which a byte has come is answered. Safe from any thread.
    void end_requests();
    int end_event() const { return end_event_.get(); }
    // Ends every connection now. Safe from any thread.
    void abort_connections();
    size_t connections() const;
    // Those that are owed an answer: new ones and ones with a request, at any of its steps; not the idle ones.
    size_t answering() const { return answering_.load(); }

    // The connection whose request the calling thread serves; null elsewhere.
    static ClientStream* current();

private:
    bool process_and_close_socket(socket_t socket) override;
    bool crowded() const;
    std::chrono::milliseconds read_timeout() const;
    std::chrono::milliseconds head_timeout() const;
    bool wait_for_request(ClientStream& stream, bool first);
    // Reads a whole head into the stream's buffer. False: it was refused, or the client is gone.
    bool take_head(ClientStream& stream, const std::string& client);

    size_t max_connections_;
    std::function<std::chrono::milliseconds()> read_timeout_;
    std::function<void()> request_end_;
    std::function<void(int, const std::string&, const std::string&, const std::string&)> head_refused_;
    UniqueFd drain_event_, end_event_;
    mutable std::mutex mutex_;
    std::unordered_set<int> sockets_;
    std::atomic<size_t> answering_{0};
};

}  // namespace onebit
