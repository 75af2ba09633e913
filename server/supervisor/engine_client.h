// One request to an engine over its Unix socket, pulled by the thread that serves the client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace onebit {

enum class EngineIo {
    ok,
    end,          // the response is complete
    client_gone,  // the watched client closed its connection
    engine_gone,  // connection refused, reset or closed too early
    malformed,    // not HTTP/1.1 as we know it
    timeout,      // nothing came within the wait; the call may be repeated
    stopping,     // the server ends, and with it every request
};

struct EngineResponseHead {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;  // as received, names not changed
    bool chunked = false;
    std::optional<uint64_t> length;  // unset: until the end of the connection, unless chunked

    // The first header of that name, without regard to case; empty if there is none.
    std::string_view header(std::string_view name) const;
};

// Every wait watches the engine and the client at once, so a client that leaves ends the request at once and without a
// second thread. Destroying it closes the connection, which frees the engine's slot. Used by one thread at a time.
class EngineExchange {
public:
    using Wait = std::optional<std::chrono::milliseconds>;  // unset: as long as engine and client live

    // Descriptors that are watched too, -1 for none; not owned. client: for a hang-up. end: readable from when the
    // server ends.
    explicit EngineExchange(int client = -1, int end = -1) : client_(client), end_event_(end) {}

    // head: request line and header fields up to and with the blank line.
    EngineIo send(const std::filesystem::path& socket, std::string_view head, std::string_view body);
    EngineIo read_head(EngineResponseHead& head, Wait wait = {});
    // Body bytes without their chunk framing; what one recv(2) gave, over all chunks in it. ok means count > 0.
    EngineIo read_body(std::span<char> out, size_t& count, Wait wait = {});
    // Sends a message with a copy of a descriptor along the connection, at once or not at all.
    bool send_descriptor(std::span<const std::byte> message, int descriptor);
    // For responses that have no body although their head names a length (HEAD, 204, 304).
    void no_body() { remaining_ = 0, chunked_ = false, until_close_ = false, finished_ = true; }
    void close() { engine_.reset(); }

private:
    enum class Chunk { size, extension, size_end, data, data_end, data_end_lf, trailer, trailer_line, trailer_end };

    EngineIo wait_for(short events, Wait wait);
    EngineIo fill(Wait wait);
    bool parse_head(std::string_view text, EngineResponseHead& head);
    bool decode_chunks(std::span<char> out, size_t& count);

    int client_, end_event_;
    UniqueFd engine_;
    std::vector<char> buffer_ = std::vector<char>(16384);
    size_t begin_ = 0, end_ = 0;
    std::string head_text_;
    bool chunked_ = false, until_close_ = false, finished_ = false, drained_ = true;
    uint64_t remaining_ = 0;
    Chunk chunk_ = Chunk::size;
    int chunk_digits_ = 0;
};

// GET of a small document, for the supervisor's own questions. Empty if the engine does not answer 200 in time.
std::optional<std::string> engine_get(const std::filesystem::path& socket, std::string_view path,
                                      std::chrono::milliseconds limit);

}  // namespace onebit
