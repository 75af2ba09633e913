// The supervisor's part in a stream whose engine may write to the client itself (stream_table.h, and the engine's part
// in engine/direct_stream.h): it offers the client's socket, and keeps its own words out of the engine's chunks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "server/supervisor/engine_client.h"
#include "server/supervisor/stream_table.h"

namespace onebit {

// Of one stream. Used by the thread that serves the client.
class StreamHandover {
public:
    using Clock = std::chrono::steady_clock;

    // table: null for an engine that does not take sockets; then nothing is ever offered. client: not owned.
    StreamHandover(std::shared_ptr<StreamTable> table, int client) : table_(std::move(table)), client_(client) {}
    ~StreamHandover();
    StreamHandover(const StreamHandover&) = delete;
    StreamHandover& operator=(const StreamHandover&) = delete;

    // Once, when the head is with the client and nothing of the body is read. Without an offer, as when all slots are
    // lent, every chunk comes through the supervisor.
    void offer(EngineExchange& exchange);

    // The client has got so many bytes in one chunk of the supervisor's; engine: the payload came from the engine.
    void wrote(size_t bytes, bool engine);

    // Between these the engine writes nothing. False: it is writing now, or the client would not take a word at once.
    bool begin_words();
    void end_words();

    // The engine writes nothing from now on. False: part of a chunk may be with the client, nothing can be added.
    // engine_gone: the engine's end of the connection is closed; else an engine that is writing is waited for, a
    // little.
    bool take_over(bool engine_gone);

    // What the engine itself wrote.
    struct Direct {
        uint64_t payload = 0, chunks = 0;
        Clock::time_point first, last;             // set if there are chunks
        bool at_event_end = true, failed = false;  // failed: the client's socket did, or it took nothing for too long
    };
    Direct direct() const;

private:
    StreamSlot& slot() const { return table_->slots[loan_->slot]; }
    bool finished_chunk();

    std::shared_ptr<StreamTable> table_;
    int client_;
    std::optional<StreamLoan> loan_;
    bool offered_ = false;
    std::optional<uint64_t> taken_before_;  // bytes that the client's socket had taken before the body
    uint64_t framed_ = 0;                   // of the body, by the supervisor
    bool closed_ = false;
};

}  // namespace onebit
