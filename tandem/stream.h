// A stream of a tandem: what ggml calls a backend. Runs graphs on the member that the route names, hands over between
// members, and repeats a graph on another member after a failure.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ggml-backend-impl.h"
#include "tandem/arrangement.h"
#include "tandem/shadow.h"
#include "tandem/staging.h"
#include "tandem/tandem.h"

namespace onebit::tandem {

// One thread at a time, as every ggml backend; keep(), upload(), deliver_now() and forget() are called with the
// tandem's mutex held.
class Stream {
public:
    // Null and a log line when a member cannot open a backend of its own.
    static std::unique_ptr<Stream> open(Tandem& tandem, const char* parameters);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream();

    Tandem& tandem() { return tandem_; }
    ggml_backend_t backend(size_t member) { return backends_[member].get(); }

    ggml_status compute(ggml_cgraph* graph);
    void optimize(ggml_cgraph* graph, ggml_backend_graph_optimize_params* parameters);
    void set(ggml_tensor* tensor, const void* data, size_t offset, size_t size);
    void get(const ggml_tensor* tensor, void* data, size_t offset, size_t size);
    // Before another backend copies to or from this one through the owner: the guests are idle, the owner is in use.
    void prepare_copy();
    void synchronize();

    // Keeps an input of the next graph. False when it must be written at once by the caller, and only so.
    bool keep(SharedBuffer& shared, size_t offset, const void* data, size_t size);
    // Writes a large input of the next graph at once, from the pinned memory where it lies as a rule. False when it was
    // not written.
    bool upload(SharedBuffer& shared, size_t offset, const void* data, size_t size);
    // Writes what waits, complete on return; it stays kept for a repeat.
    void deliver_now();
    void forget(const SharedBuffer& shared);

private:
    struct FreeBackend {
        void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); }
    };
    struct Write {
        SharedBuffer* shared = nullptr;
        size_t offset = 0, bytes = 0;
        const char* data = nullptr;
    };
    struct Read {
        ggml_tensor tensor = {};
        void* data = nullptr;
        size_t offset = 0, size = 0;
    };

    explicit Stream(Tandem& tandem);
    Plan& plan_for(ggml_cgraph* graph);
    void enter(size_t member);
    void wait(size_t member);
    void begin(size_t member);
    void mark_busy();
    bool is_cpu(size_t member) const;
    void deliver(size_t member, bool again);
    ggml_status run(size_t member, ggml_cgraph* graph, uint64_t uid);
    Shadow* shadow_for(size_t member, ggml_cgraph* graph, uint64_t uid, std::string& why);
    void prepare_next();
    bool busy() const;
    bool repeatable(ggml_cgraph* graph, std::string& why);
    ggml_status repeat(ggml_cgraph* graph, const Plan& plan, size_t failed);
    void read_on(size_t member, const ggml_tensor* tensor, void* data, size_t offset, size_t size);
    void check_results();
    void count(const Plan& plan, size_t member);
    void failed(size_t member);
    ggml_status give_up(std::string text);
    [[noreturn]] void lost(size_t member, const std::exception& exception);

    struct PlanEntry {
        uint64_t uid = 0;
        int nodes = 0;
        const ggml_tensor* first = nullptr;
        const ggml_tensor* last = nullptr;
        size_t dropped = 0;
        uint64_t route = 0;
        Plan plan;
    };

    Tandem& tandem_;
    std::vector<std::unique_ptr<ggml_backend, FreeBackend>> backends_;
    std::vector<bool> busy_;
    std::vector<uint64_t> failures_in_row_;
    size_t last_ = 0;
    std::list<PlanEntry> plans_;
    Plan uncached_plan_;
    ShadowCache shadows_;
    Arrangements arrangements_;

    std::deque<Staging> staging_;  // one a member, in memory that the member copies from directly
    std::vector<Write> writes_;
    size_t delivered_ = 0;                     // writes before this one have reached the memory
    bool consumed_ = true;                     // a graph has run on the writes, so the next one begins a new set
    bool refused_ = false;                     // a write since the last graph could not be kept
    bool last_refused_ = false;                // the same, of the writes that the last graph ran on
    ggml_backend_buffer_t barrier_ = nullptr;  // see deliver()

    std::vector<Read> reads_;            // results asked for since the last graph
    ggml_cgraph* next_graph_ = nullptr;  // announced by optimize() while a member works, see prepare_next()
    ggml_cgraph* last_graph_ = nullptr;  // null once the scheduler builds another one in its place
    size_t last_graph_member_ = 0;
    bool last_graph_whole_ = false;
    bool poisoned_ = false;  // a wrong result could not be repeated: the next graph fails
};

}  // namespace onebit::tandem
