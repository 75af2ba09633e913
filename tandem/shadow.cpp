#include "tandem/shadow.h"

#include <cstring>

namespace onebit::tandem {
namespace {

constexpr size_t max_shadows = 128;  // more than the pieces of one graph, so that a graph in pieces is not built anew

// Where a tensor's memory is: views have none of their own.
ggml_backend_buffer_t buffer_of(const ggml_tensor* tensor) {
    const ggml_tensor* root = tensor->view_src != nullptr ? tensor->view_src : tensor;
    return root->buffer != nullptr ? root->buffer : tensor->buffer;
}

bool overlap(const Span& a, const Span& b) {
    return a.shared == b.shared && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

size_t Shadow::slot(const ggml_tensor* tensor) const {
    const size_t count = originals_.size();
    size_t i = (reinterpret_cast<uintptr_t>(tensor) >> 4) * 0x9E3779B97F4A7C15ull % count;
    while (originals_[i] != nullptr && originals_[i] != tensor) i = (i + 1) % count;
    return i;
}

bool Shadow::rebase(const ggml_tensor* tensor, ggml_tensor* copy) {
    ggml_backend_buffer_t buffer = buffer_of(tensor);
    copy->extra = nullptr;
    copy->buffer = nullptr;
    if (buffer == nullptr || tensor->data == nullptr) {
        if (tensor->data == nullptr && !ggml_is_empty(tensor)) {
            why_ = std::string("tensor ") + tensor->name + " has no memory";
            return false;
        }
        return true;
    }
    if (buffer != last_buffer_) {
        last_shared_ = SharedBuffers::instance().find(buffer);
        last_buffer_ = buffer;
    }
    if (last_shared_ == nullptr && sees_host_ && ggml_backend_buffer_is_host(buffer)) {
        copy->buffer = buffer;
        return true;
    }
    if (last_shared_ == nullptr) {
        why_ = std::string("tensor ") + tensor->name + " is in memory that is not shared (" +
               ggml_backend_buffer_name(buffer) + ")";
        return false;
    }
    Region& region = *last_shared_->regions[guest_];
    copy->data = region.base() + last_shared_->offset_of(tensor);
    copy->buffer = region.buffer();
    copy->buffer->usage = buffer->usage;  // set after the allocation, and read by ggml-cuda's padding rules
    shared_[slot(tensor)] = last_shared_;
    if (tensor->view_src == nullptr && buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
        // the guest's own view, at the guest's own address
        const auto same =
            last_shared_->layout->check(copy, static_cast<size_t>(static_cast<char*>(copy->data) - region.base()));
        if (!same) {
            why_ = same.error().message();
            return false;
        }
    }
    return true;
}

// Sources outside the graph are copied without their own sources, or the whole graph upstream would be.
ggml_tensor* Shadow::copy(ggml_tensor* tensor) {
    if (tensor == nullptr) return nullptr;
    const size_t at = slot(tensor);
    if (originals_[at] != nullptr) return copies_[at];
    originals_[at] = tensor;
    if (used_ == tensors_.size()) tensors_.emplace_back();
    ggml_tensor* made = &tensors_[used_++];
    copies_[at] = made;
    *made = *tensor;
    std::memset(made->src, 0, sizeof made->src);
    if (!rebase(tensor, made)) return nullptr;
    if (tensor->view_src != nullptr) {
        made->view_src = copy(tensor->view_src);
        if (made->view_src == nullptr) return nullptr;
    }
    return made;
}

bool Shadow::build(ggml_cgraph* graph, size_t guest, bool sees_host) {
    const int count = graph->n_nodes;
    guest_ = guest;
    sees_host_ = sees_host;
    used_ = 0;
    last_buffer_ = nullptr;
    overwritten_.clear();
    updates_state_ = false;
    why_.clear();
    const size_t slots = static_cast<size_t>(count) * 6 + 64;
    originals_.assign(slots, nullptr);
    copies_.assign(slots, nullptr);
    shared_.assign(slots, nullptr);
    nodes_.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
        if ((nodes_[static_cast<size_t>(i)] = copy(graph->nodes[i])) == nullptr) return false;
    for (int i = 0; i < count; ++i) {
        for (int s = 0; s < GGML_MAX_SRC; ++s) {
            ggml_tensor* source = graph->nodes[i]->src[s];
            if (source == nullptr) continue;
            ggml_tensor* made = copy(source);
            if (made == nullptr) return false;
            nodes_[static_cast<size_t>(i)]->src[s] = made;
        }
    }

    const size_t hash_size = static_cast<size_t>(count) * 2 + 16;
    keys_.assign(hash_size, nullptr);
    slots_used_.assign(ggml_bitset_size(hash_size), 0);
    use_counts_.assign(hash_size, 0);
    graph_ = {};
    graph_.size = graph_.n_nodes = count;
    graph_.nodes = nodes_.data();
    graph_.use_counts = use_counts_.data();
    graph_.visited_hash_set = {hash_size, slots_used_.data(), keys_.data()};
    graph_.order = graph->order;
    // fusion asks how often a node is used; inputs that the scheduler copied are not in the graph's set
    for (int i = 0; i < count; ++i) {
        const size_t from = ggml_hash_find(&graph->visited_hash_set, graph->nodes[i]);
        const size_t to = ggml_hash_find_or_insert(&graph_.visited_hash_set, nodes_[static_cast<size_t>(i)]);
        const bool known = from != GGML_HASHSET_FULL && ggml_bitset_get(graph->visited_hash_set.used, from);
        use_counts_[to] = known ? graph->use_counts[from] : 0;
    }
    find_overwritten(graph);
    return true;
}

void Shadow::find_overwritten(const ggml_cgraph* graph) {
    std::vector<Span> written;
    written.reserve(nodes_.size());
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if (ggml_op_is_empty(node->op) || ggml_is_empty(node)) continue;
        SharedBuffer* shared = shared_[slot(node)];
        if (shared == nullptr) continue;
        written.push_back({shared, shared->offset_of(node), ggml_nbytes(node)});
        // rows of a KV cache are written with the same values again; anything else in lasting memory is state
        if (shared->buffer->usage == GGML_BACKEND_BUFFER_USAGE_ANY && node->op != GGML_OP_SET_ROWS)
            updates_state_ = true;
    }
    for (size_t i = 0; i < originals_.size(); ++i) {
        const ggml_tensor* tensor = originals_[i];
        SharedBuffer* shared = shared_[i];
        if (tensor == nullptr || shared == nullptr || tensor->view_src != nullptr) continue;
        if (shared->buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) continue;
        if (ggml_hash_contains(&graph_.visited_hash_set, copies_[i])) continue;
        const Span span{shared, shared->offset_of(tensor), ggml_nbytes(tensor)};
        for (const Span& write : written) {
            if (!overlap(span, write)) continue;
            overwritten_.push_back(span);
            break;
        }
    }
}

Shadow* ShadowCache::get(ggml_cgraph* graph, uint64_t uid, size_t guest, bool sees_host, std::string& why) {
    const uint64_t generation = SharedBuffers::instance().generation();
    const ggml_tensor* first = graph->nodes[0];
    const ggml_tensor* last = graph->nodes[graph->n_nodes - 1];
    auto reuse = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->guest != guest || entry->nodes != graph->n_nodes || entry->first != first || entry->last != last)
            continue;
        if (uid != 0 && entry->uid == uid && entry->generation == generation) {
            ++hits_;
            entries_.splice(entries_.begin(), entries_, entry);
            return &entries_.front().shadow;
        }
        reuse = entry;  // an older graph that lay in the same memory
    }
    if (reuse == entries_.end()) {
        if (entries_.size() >= max_shadows)
            reuse = std::prev(entries_.end());
        else
            reuse = entries_.emplace(entries_.end());
    }
    entries_.splice(entries_.begin(), entries_, reuse);
    Entry& entry = entries_.front();
    entry.uid = uid;
    entry.generation = generation;
    entry.guest = guest;
    entry.nodes = graph->n_nodes;
    entry.first = first;
    entry.last = last;
    ++builds_;
    if (!entry.shadow.build(graph, guest, sees_host)) {
        why = entry.shadow.why();
        entries_.pop_front();
        return nullptr;
    }
    entry.shadow.graph()->uid = uid;
    return &entry.shadow;
}

}  // namespace onebit::tandem
