// A shadow of a graph: the same tensors with the addresses of another member, so that this member can run the graph on
// the shared memory.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "ggml-impl.h"
#include "tandem/shared_buffer.h"

namespace onebit::tandem {

// A part of shared memory that a graph uses.
struct Span {
    SharedBuffer* shared = nullptr;
    size_t offset = 0, bytes = 0;
};

class Shadow {
public:
    // Builds the shadow for one guest (its number among the tandem's guests). sees_host: the guest also works on
    // ordinary host memory. False when a tensor lies in memory that the guest cannot see; why() then names it. Building
    // again reuses the memory of the tensors, in the same order: a graph of the same shape keeps its addresses, which
    // ggml-cuda's recorded graphs are found by.
    bool build(ggml_cgraph* graph, size_t guest, bool sees_host);

    ggml_cgraph* graph() { return &graph_; }
    const std::string& why() const { return why_; }

    // Inputs in compute buffers whose memory a node of the graph overwrites: the allocator reuses it. A repeat of the
    // graph is right only when these were kept.
    const std::vector<Span>& overwritten() const { return overwritten_; }

    // The graph updates state in place (recurrent models, a shift of the KV cache), so a repeat would not be the same.
    bool updates_state() const { return updates_state_; }

private:
    ggml_tensor* copy(ggml_tensor* tensor);
    bool rebase(const ggml_tensor* tensor, ggml_tensor* copy);
    void find_overwritten(const ggml_cgraph* graph);
    size_t slot(const ggml_tensor* tensor) const;

    size_t guest_ = 0;
    bool sees_host_ = false;
    size_t used_ = 0;
    std::deque<ggml_tensor> tensors_;
    std::vector<ggml_tensor*> originals_, copies_;  // open addressing, by the original's address
    std::vector<SharedBuffer*> shared_;             // beside copies_
    std::vector<ggml_tensor*> nodes_, keys_;
    std::vector<ggml_bitset_t> slots_used_;
    std::vector<int32_t> use_counts_;
    ggml_cgraph graph_ = {};
    std::vector<Span> overwritten_;
    bool updates_state_ = false;
    std::string why_;
    ggml_backend_buffer_t last_buffer_ = nullptr;
    SharedBuffer* last_shared_ = nullptr;
};

// Shadows by the graph they belong to. One thread at a time.
class ShadowCache {
public:
    // uid: the graph's, or one made for a piece of it; 0 is never found again. Null when the graph cannot have a
    // shadow; why then says the reason.
    Shadow* get(ggml_cgraph* graph, uint64_t uid, size_t guest, bool sees_host, std::string& why);

    uint64_t builds() const { return builds_; }
    uint64_t hits() const { return hits_; }

private:
    struct Entry {
        uint64_t uid = 0, generation = 0;
        size_t guest = 0;
        int nodes = 0;
        const ggml_tensor* first = nullptr;
        const ggml_tensor* last = nullptr;
        Shadow shadow;
    };
    std::list<Entry> entries_;  // most recently used first
    uint64_t builds_ = 0, hits_ = 0;
};

}  // namespace onebit::tandem
