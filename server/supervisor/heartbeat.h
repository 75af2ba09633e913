// The memory through which an engine process shows its supervisor that it makes progress.
// The engine writes, the supervisor reads; no calls, no locks. In the table of streams both write. Both are the same
// binary, so the layout is private.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "server/supervisor/placement.h"
#include "server/supervisor/stream_table.h"
#include "server/supervisor/tandem_table.h"

namespace onebit {

struct HeartbeatPage {
    static constexpr uint32_t kMagic = 0x31626974;  // "1bit"
    static constexpr uint32_t kVersion = 5;
    uint32_t magic;
    uint32_t version;
    std::atomic<uint64_t> graphs_begun;  // per graph handed to a backend
    std::atomic<uint64_t>
        graphs_done;  // per graph known to be finished: at return, or at synchronize where asynchronous
    std::atomic<uint64_t> graph_steps;         // nodes finished inside a graph, where the backend tells (the CPU does)
    std::atomic<uint64_t> pipelines;           // GPU pipelines compiled since start
    std::atomic<uint64_t> load_steps;          // calls of llama.cpp's load progress; every model of the process counts
    std::atomic<uint64_t> load_permille;       // 0 to 1000 while the weights load; never falls
    std::atomic<uint64_t> longest_graph_us;    // of those done, without the first of each kind
    std::atomic<uint64_t> longest_graph_work;  // multiply-adds of that graph, see graph_work()
    std::atomic<uint64_t> last_graph_us;
    std::atomic<uint64_t> open_work;          // multiply-adds of the graphs begun and not done
    std::atomic<uint64_t> pipelines_at_done;  // pipelines when the last graph was done
    std::atomic<uint64_t> ready;              // 1 once the model serves; the supervisor sets it when /health says so
    std::atomic<uint64_t> requests;           // in flight, as the supervisor counts them
    std::atomic<uint64_t> running_member;     // 1 + place in tandem.members of the one that works at a graph; 0: none
    PlacementTable placement;                 // where the memory lies
    TandemTable tandem;
    StreamTable streams;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// One mapping of it; unmapped on destruction.
class Heartbeat {
public:
    // Supervisor: a new page in a memfd, zeroed, that a child may inherit. It cannot be made smaller by the child.
    static Result<Heartbeat> create();
    // Engine: the page of an inherited descriptor, which it takes over. Error invalid when it is not such a page; the
    // descriptor stays open then.
    static Result<Heartbeat> attach(int fd);
    Heartbeat(Heartbeat&& other) noexcept;
    Heartbeat& operator=(Heartbeat&& other) noexcept;
    ~Heartbeat();
    HeartbeatPage& page() const { return *page_; }
    int fd() const { return fd_.get(); }

private:
    Heartbeat(UniqueFd fd, HeartbeatPage* page) : fd_(std::move(fd)), page_(page) {}
    UniqueFd fd_;
    HeartbeatPage* page_ = nullptr;
};

}  // namespace onebit
