#include "tandem/stream.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"
#include "tandem/forced_member.h"

namespace onebit::tandem {
namespace {

constexpr uint64_t failures_until_dropped = 3;
constexpr size_t max_plans = 64;

using Clock = std::chrono::steady_clock;

uint64_t microseconds_since(Clock::time_point start) {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// Adds the time of its scope.
class Stopwatch {
public:
    explicit Stopwatch(std::atomic<uint64_t>& total) : total_(total) {}
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;
    ~Stopwatch() { total_ += microseconds_since(start_); }

private:
    std::atomic<uint64_t>& total_;
    Clock::time_point start_ = Clock::now();
};

// The scheduler's copies of inputs, which are not allocated yet, stay as they are while the graph runs, so that it can
// run again after a failure.
void hold_inputs(ggml_cgraph* graph) {
    for (int i = 0; i < graph->n_nodes; ++i)
        for (ggml_tensor* source : graph->nodes[i]->src)
            if (source != nullptr && source->op == GGML_OP_NONE && source->buffer == nullptr &&
                source->data == nullptr && source->view_src == nullptr)
                source->flags |= GGML_TENSOR_FLAG_OUTPUT;
}

// A sample of the row: what is not a number in a hidden state reaches all logits, and looking at each of 150,000 of
// them would cost two percent of a token.
bool has_nan(const void* data, size_t bytes) {
    constexpr size_t stride = 257;
    const auto* values = static_cast<const uint32_t*>(data);
    for (size_t i = 0; i < bytes / sizeof(uint32_t); i += stride)
        if ((values[i] & 0x7fffffffu) > 0x7f800000u) return true;
    return false;
}

}  // namespace

Stream::Stream(Tandem& tandem) : tandem_(tandem) {
    for (size_t i = 0; i < tandem.members(); ++i) staging_.emplace_back(tandem.device(i));
}

std::unique_ptr<Stream> Stream::open(Tandem& tandem, const char* parameters) {
    std::unique_ptr<Stream> stream(new Stream(tandem));
    for (size_t i = 0; i < tandem.members(); ++i) {
        stream->backends_.emplace_back(ggml_backend_dev_init(tandem.device(i), i == 0 ? parameters : nullptr));
        if (stream->backends_.back() == nullptr) {
            log_error("tandem", tandem.name() + ": " + tandem.member_name(i) + " cannot open a backend");
            return nullptr;
        }
    }
    stream->busy_.assign(tandem.members(), false);
    stream->failures_in_row_.assign(tandem.members(), 0);
    tandem.attach(stream.get());
    return stream;
}

Stream::~Stream() {
    if (backends_.size() != tandem_.members() || backends_.back() == nullptr) return;
    for (size_t i = 0; i < backends_.size(); ++i) wait(i);
    tandem_.detach(this);
    if (barrier_ != nullptr) ggml_backend_buffer_free(barrier_);
}

Plan& Stream::plan_for(ggml_cgraph* graph) {
    const Stopwatch watch(tandem_.counters().plan_us);
    size_t dropped = 0;
    for (const auto& member : tandem_.counters().members) dropped += member.dropped.load(std::memory_order_relaxed);
    const ggml_tensor* first = graph->nodes[0];
    const ggml_tensor* last = graph->nodes[graph->n_nodes - 1];
    const uint64_t route = tandem_.route_version();
    if (graph->uid == 0) return uncached_plan_ = tandem_.plan(graph);
    for (auto entry = plans_.begin(); entry != plans_.end(); ++entry)
        if (entry->uid == graph->uid && entry->nodes == graph->n_nodes && entry->first == first &&
            entry->last == last && entry->dropped == dropped && entry->route == route) {
            plans_.splice(plans_.begin(), plans_, entry);
            return plans_.front().plan;
        }
    if (plans_.size() >= max_plans) plans_.pop_back();
    plans_.push_front({graph->uid, graph->n_nodes, first, last, dropped, route, tandem_.plan(graph)});
    return plans_.front().plan;
}

bool Stream::is_cpu(size_t member) const {
    return ggml_backend_dev_type(tandem_.device(member)) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

// The driver has lost the device: its memory is gone, and the supervisor starts an engine without it.
void Stream::lost(size_t member, const std::exception& exception) {
    log_error("tandem", tandem_.name() + ": " + tandem_.member_name(member) + " is lost: " + exception.what());
    std::abort();
}

void Stream::begin(size_t member) {
    busy_[member] = true;
    Tandem::mark_running(member + 1);
}

// Who reads the mark of a dead process must not blame a member that had nothing to do; a CPU is done at its return.
void Stream::mark_busy() {
    size_t running = 0;
    for (size_t i = 0; i < busy_.size(); ++i)
        if (busy_[i] && !is_cpu(i)) running = i + 1;
    Tandem::mark_running(running);
}

void Stream::wait(size_t member) {
    if (!busy_[member]) return;
    const Stopwatch watch(tandem_.counters().wait_us);
    Tandem::mark_running(member + 1);
    try {
        ggml_backend_synchronize(backends_[member].get());
    } catch (const std::exception& exception) {
        lost(member, exception);
    }
    busy_[member] = false;
    mark_busy();
}

// Hands over to the member: the one before it has finished, and what it wrote is visible.
void Stream::enter(size_t member) {
    if (last_ != member) {
        const auto start = Clock::now();
        wait(last_);
        if (last_ == 0 && is_cpu(member) && barrier_ != nullptr) {
            // a read makes ggml-vulkan issue the barrier after which the CPU may look at the memory
            char word[4];
            ggml_tensor tensor =
                bytes_of(barrier_, static_cast<char*>(ggml_backend_buffer_get_base(barrier_)), sizeof word);
            ggml_backend_tensor_get(&tensor, word, 0, sizeof word);
        }
        last_ = member;
        if (!ForcedMember::current()) {
            ++tandem_.counters().handoffs;
            tandem_.counters().handoff_us += microseconds_since(start);
        }
    }
    tandem_.last_member() = member;
}

bool Stream::keep(SharedBuffer& shared, size_t offset, const void* data, size_t size) {
    if (consumed_) {
        if (busy()) {
            refused_ = true;
            return false;
        }
        writes_.clear();
        for (Staging& staging : staging_) staging.reset();
        delivered_ = 0;
        consumed_ = false;
    }
    // the next graph runs on the same member as a rule; another one can read the memory as well, more slowly
    char* memory = staging_[last_].take(size);
    if (memory == nullptr) {
        refused_ = true;
        return false;
    }
    const Stopwatch watch(tandem_.counters().input_us);
    std::memcpy(memory, data, size);
    tandem_.counters().staged_bytes += size;
    writes_.push_back({&shared, offset, size, memory});
    return true;
}

bool Stream::upload(SharedBuffer& shared, size_t offset, const void* data, size_t size) {
    if (busy()) return false;
    const auto overlaps = [&](const Write& write) {
        return write.shared == &shared && write.offset < offset + size && offset < write.offset + write.bytes;
    };
    if (!consumed_ && std::any_of(writes_.begin(), writes_.end(), overlaps)) return false;
    const Stopwatch watch(tandem_.counters().input_us);
    const size_t member = tandem_.pinning_member();
    if (member > 0) return shared.regions[member - 1]->write(offset, data, size);
    if (last_ > 0) return false;
    ggml_tensor tensor = bytes_of(shared.buffer, shared.owner_base + offset, size);
    try {
        ggml_backend_tensor_set_async(backends_[0].get(), &tensor, data, 0, size);
        ggml_backend_synchronize(backends_[0].get());
    } catch (const std::exception& exception) {
        lost(0, exception);
    }
    return true;
}

// again: the whole set, as it was for the first run, for a repeat.
void Stream::deliver(size_t member, bool again) {
    const std::lock_guard lock(tandem_.mutex());
    const Stopwatch watch(tandem_.counters().input_us);
    bool queued = false;
    for (size_t i = again ? 0 : delivered_; i < writes_.size(); ++i) {
        const Write& write = writes_[i];
        if (write.shared->host != nullptr) {
            if (again) std::memcpy(write.shared->host + write.offset, write.data, write.bytes);
            continue;
        }
        ggml_tensor tensor = member == 0
                                 ? bytes_of(write.shared->buffer, write.shared->owner_base + write.offset, write.bytes)
                                 : bytes_of(write.shared->regions[member - 1]->buffer(),
                                            write.shared->regions[member - 1]->base() + write.offset, write.bytes);
        ggml_backend_tensor_set_async(backends_[member].get(), &tensor, write.data, 0, write.bytes);
        queued = true;
    }
    delivered_ = writes_.size();
    if (!queued) return;
    busy_[member] = true;
    if (member != 0) return;
    // ggml-vulkan puts its barrier before a copy, not behind it: one more copy makes those above visible to the graph
    if (barrier_ == nullptr)
        barrier_ = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(tandem_.device(0)), 256);
    if (barrier_ == nullptr || writes_.empty()) return;
    ggml_tensor tensor = bytes_of(barrier_, static_cast<char*>(ggml_backend_buffer_get_base(barrier_)), 4);
    ggml_backend_tensor_set_async(backends_[0].get(), &tensor, writes_.back().data, 0, 4);
}

void Stream::deliver_now() {
    for (; delivered_ < writes_.size(); ++delivered_) {
        const Write& write = writes_[delivered_];
        if (write.shared->host != nullptr) continue;
        const size_t member = tandem_.last_member();
        if (member > 0 && write.shared->regions[member - 1]->write(write.offset, write.data, write.bytes)) continue;
        ggml_tensor tensor = bytes_of(write.shared->buffer, write.shared->owner_base + write.offset, write.bytes);
        write.shared->original.set_tensor(write.shared->buffer, &tensor, write.data, 0, write.bytes);
    }
}

void Stream::forget(const SharedBuffer& shared) {
    size_t kept = 0;
    for (size_t i = 0; i < writes_.size(); ++i) {
        if (writes_[i].shared == &shared) {
            if (i < delivered_) --delivered_;
            continue;
        }
        writes_[kept++] = writes_[i];
    }
    writes_.resize(kept);
}

bool Stream::busy() const { return std::find(busy_.begin(), busy_.end(), true) != busy_.end(); }

Shadow* Stream::shadow_for(size_t member, ggml_cgraph* graph, uint64_t uid, std::string& why) {
    Shadow* shadow = shadows_.get(graph, uid, member - 1, is_cpu(member), why);
    tandem_.counters().shadow_builds = shadows_.builds();
    tandem_.counters().shadow_hits = shadows_.hits();
    return shadow;
}

// The scheduler waits here before it writes the inputs of the graph that it built last, and the members would stand
// still while its plan and its shadow are made. It must wait for work in flight before it lets a graph go, so one that
// was announced since that began is alive.
void Stream::prepare_next() {
    ggml_cgraph* graph = std::exchange(next_graph_, nullptr);
    if (graph == nullptr || graph->uid == 0 || !busy()) return;
    const auto unallocated = [](const ggml_tensor* node) { return node->data == nullptr && !ggml_is_empty(node); };
    if (std::any_of(graph->nodes, graph->nodes + graph->n_nodes, unallocated)) return;
    const Plan& plan = plan_for(graph);
    if (plan.pieces.size() != 1) return;
    const Stopwatch watch(tandem_.counters().plan_us);
    const size_t member = plan.pieces.front().member;
    std::string why;
    if (member > 0 && shadow_for(member, graph, graph->uid, why) == nullptr) return;
    ++tandem_.counters().prepared;
}

ggml_status Stream::run(size_t member, ggml_cgraph* graph, uint64_t uid) {
    const Stopwatch watch(tandem_.counters().submit_us);
    ggml_status status = GGML_STATUS_FAILED;
    try {
        if (member == 0) {
            begin(0);
            tandem_.cause_fatal_fault(0);
            status = ggml_backend_graph_compute_async(backends_[0].get(), graph);
        } else {
            std::string why;
            Shadow* shadow = shadow_for(member, graph, uid, why);
            if (shadow == nullptr) {
                log_verbose("tandem",
                            tandem_.name() + ": " + tandem_.member_name(member) + " cannot run a graph: " + why);
                return GGML_STATUS_FAILED;
            }
            begin(member);
            tandem_.cause_fatal_fault(member);
            status = ggml_backend_graph_compute_async(backends_[member].get(), shadow->graph());
        }
    } catch (const std::exception& exception) {
        lost(member, exception);
    }
    mark_busy();
    if (tandem_.fault(Fault::Kind::compute, member)) {
        wait(member);
        return GGML_STATUS_FAILED;
    }
    return status;
}

void Stream::failed(size_t member) {
    ++tandem_.counters().members[member].failures;
    if (++failures_in_row_[member] >= failures_until_dropped && tandem_.members() > 1) tandem_.drop(member);
}

void Stream::count(const Plan& plan, size_t member) {
    if (ForcedMember::current()) return;
    MemberCounters& counters = tandem_.counters().members[member];
    ++counters.graphs;
    if (plan.phase == Phase::prefill) ++counters.prefill_graphs;
    (plan.phase == Phase::prefill ? counters.prefill_tokens : counters.decode_tokens) +=
        static_cast<uint64_t>(plan.tokens);
}

ggml_status Stream::give_up(std::string text) {
    log_error("tandem", text);
    tandem_.counters().set_last_error(std::move(text));
    return GGML_STATUS_FAILED;
}

ggml_status Stream::compute(ggml_cgraph* graph) {
    last_graph_ = next_graph_ = nullptr;
    if (graph->n_nodes == 0) return GGML_STATUS_SUCCESS;
    tandem_.set_thread_stream(this);
    if (poisoned_) {
        poisoned_ = false;
        return give_up(tandem_.name() + ": the result before was not a number and could not be computed again");
    }
    tandem_.flush(this);
    const Plan plan = plan_for(graph);
    reads_.clear();
    const std::string refusal = plan.fallback.empty() ? std::string()
                                                      : tandem_.name() + ": " + plan.fallback + " does not run on " +
                                                            tandem_.member_name(plan.member);
    if (plan.pieces.empty()) {
        ++tandem_.counters().refused;
        return give_up(refusal +
                       (tandem_.settings().strict ? ", and strict allows no other member" : ", and on no other"));
    }
    if (!plan.fallback.empty() && tandem_.counters().add_fallback(plan.fallback))
        log_info("tandem", refusal + ", but on " + tandem_.member_name(plan.pieces.front().member));

    {
        const std::lock_guard lock(tandem_.mutex());
        if (consumed_) writes_.clear(), delivered_ = 0;  // they belong to the graph before
    }
    size_t most = 0, member = plan.pieces.front().member;
    ggml_status status = GGML_STATUS_SUCCESS;
    const bool whole = plan.pieces.size() == 1;
    for (const Piece& piece : plan.pieces) {
        const bool first = &piece == &plan.pieces.front();
        enter(piece.member);
        if (first) deliver(piece.member, false);
        if (whole) {
            status = run(piece.member, graph, graph->uid);
        } else {
            ggml_cgraph part = ggml_graph_view(graph, piece.first, piece.last);
            // a key of its own, outside the range of the scheduler's
            const uint64_t uid =
                graph->uid == 0 ? 0 : (graph->uid * 4096 + static_cast<uint64_t>(piece.first)) | (uint64_t{1} << 63);
            status = run(piece.member, &part, uid);
        }
        if (static_cast<size_t>(piece.last - piece.first) > most) {
            most = static_cast<size_t>(piece.last - piece.first);
            member = piece.member;
        }
        if (status != GGML_STATUS_SUCCESS) {
            failed(piece.member);
            status = repeat(graph, plan, piece.member);
            member = last_;
            break;
        }
        failures_in_row_[piece.member] = 0;
    }
    consumed_ = true;
    last_refused_ = refused_;
    refused_ = false;
    if (status != GGML_STATUS_SUCCESS) return status;
    count(plan, member);
    // a piece that the scheduler cut out for a callback is gone when it returns, and is not all of what made the result
    last_graph_ = graph->uid != 0 ? graph : nullptr;
    last_graph_member_ = member;
    last_graph_whole_ = whole;
    return status;
}

bool Stream::repeatable(ggml_cgraph* graph, std::string& why) {
    if (!tandem_.settings().repeat) return why = "repeating is switched off", false;
    if (tandem_.members() < 2) return why = "there is no other member", false;
    if (tandem_.settings().strict) return why = "strict allows no other member", false;
    const Shadow* shadow = shadows_.get(graph, graph->uid, 0, is_cpu(1), why);
    if (shadow == nullptr) return false;
    if (shadow->updates_state()) return why = "the graph updates state in place", false;
    if (consumed_ ? last_refused_ : refused_) return why = "an input was too large to keep", false;
    for (const Span& span : shadow->overwritten()) {
        const bool kept = std::any_of(writes_.begin(), writes_.end(), [&](const Write& write) {
            return write.shared == span.shared && write.offset <= span.offset &&
                   span.offset + span.bytes <= write.offset + write.bytes;
        });
        if (!kept) return why = "the graph overwrites an input that was not kept", false;
    }
    return true;
}

ggml_status Stream::repeat(ggml_cgraph* graph, const Plan& plan, size_t failed_member) {
    const std::string what = tandem_.name() + ": a graph of " + std::to_string(plan.tokens) + " tokens failed on " +
                             tandem_.member_name(failed_member);
    std::string why;
    if (!repeatable(graph, why)) return give_up(what + " and cannot be repeated: " + why);
    for (size_t member = 0; member < tandem_.members(); ++member) {
        if (member == failed_member) continue;
        bool can = true;
        for (int i = 0; i < graph->n_nodes && can; ++i)
            can = ggml_op_is_empty(graph->nodes[i]->op) || tandem_.supports(member, graph->nodes[i]);
        if (!can) continue;
        for (size_t i = 0; i < tandem_.members(); ++i) wait(i);
        enter(member);
        deliver(member, true);
        ++tandem_.counters().repeats;
        if (run(member, graph, graph->uid) != GGML_STATUS_SUCCESS) {
            failed(member);
            continue;
        }
        log_warning("tandem", what + "; repeated on " + tandem_.member_name(member));
        return GGML_STATUS_SUCCESS;
    }
    return give_up(what + " and on every other member");
}

// One order of the nodes and one set of wishes whoever runs the graph: the scheduler's plan of the memory then fits the
// graphs of every phase. Another plan is a wait for the graph before, while which the mask could be filled.
void Stream::optimize(ggml_cgraph* graph, ggml_backend_graph_optimize_params* parameters) {
    last_graph_ = next_graph_ = nullptr;
    if (graph->n_nodes == 0) return;
    const Stopwatch watch(tandem_.counters().plan_us);
    if (tandem_.members() > 1 && tandem_.settings().repeat) hold_inputs(graph);
    const auto ask = [this](size_t member, ggml_cgraph* asked, ggml_backend_graph_optimize_params* wishes) {
        ggml_backend_t backend = backends_[member].get();
        if (backend->iface.graph_optimize != nullptr) backend->iface.graph_optimize(backend, asked, wishes);
    };
    arrangements_.arrange(graph, graph_tokens(graph), {tandem_.members(), tandem_.owner_takes_part(), ask}, parameters);
    tandem_.counters().arranged = arrangements_.asked();
    if (busy()) next_graph_ = graph;
}

void Stream::set(ggml_tensor* tensor, const void* data, size_t offset, size_t size) {
    tandem_.set_thread_stream(this);
    tandem_.flush(this);
    SharedBuffer* shared =
        SharedBuffers::instance().find(tensor->view_src != nullptr ? tensor->view_src->buffer : tensor->buffer);
    const size_t member = shared == nullptr || shared->host != nullptr ? 0 : last_;
    if (member == 0) wait(last_);
    deliver(member, false);
    busy_[member] = true;
    if (shared != nullptr && shared->buffer->usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE) refused_ = true;
    if (member == 0) {
        ggml_backend_tensor_set_async(backends_[0].get(), tensor, data, offset, size);
        return;
    }
    Region& region = *shared->regions[member - 1];
    ggml_tensor bytes = bytes_of(region.buffer(), region.base() + shared->offset_of(tensor) + offset, size);
    ggml_backend_tensor_set_async(backends_[member].get(), &bytes, data, 0, size);
}

void Stream::read_on(size_t member, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    SharedBuffer* shared =
        SharedBuffers::instance().find(tensor->view_src != nullptr ? tensor->view_src->buffer : tensor->buffer);
    busy_[member] = true;
    if (member == 0 || shared == nullptr) {
        ggml_backend_tensor_get_async(backends_[0].get(), tensor, data, offset, size);
        busy_[0] = true;
        return;
    }
    Region& region = *shared->regions[member - 1];
    ggml_tensor bytes = bytes_of(region.buffer(), region.base() + shared->offset_of(tensor) + offset, size);
    ggml_backend_tensor_get_async(backends_[member].get(), &bytes, data, 0, size);
}

void Stream::get(const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    tandem_.set_thread_stream(this);
    tandem_.flush(this);
    deliver(last_, false);
    read_on(last_, tensor, data, offset, size);
    if (tandem_.members() > 1 && tandem_.settings().repeat && tensor->type == GGML_TYPE_F32 && size > 0)
        reads_.push_back({*tensor, data, offset, size});
}

void Stream::prepare_copy() {
    tandem_.flush();
    wait(last_);
    enter(0);
    busy_[0] = true;
    refused_ = true;
}

void Stream::synchronize() {
    tandem_.set_thread_stream(this);
    prepare_next();
    for (size_t i = 0; i < backends_.size(); ++i) wait(i);
    if (!reads_.empty()) check_results();
}

// A result that is not a number is a failure of the member, unless another member computes the same.
void Stream::check_results() {
    const std::vector<Read> reads = std::move(reads_);
    reads_.clear();
    if (tandem_.fault(Fault::Kind::nan, last_graph_member_)) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(reads.front().data, &nan, std::min(sizeof nan, reads.front().size));
    }
    const auto wrong = [](const Read& read) { return has_nan(read.data, read.size); };
    if (std::none_of(reads.begin(), reads.end(), wrong)) return;

    const size_t member = last_graph_member_;
    const std::string what =
        tandem_.name() + ": " + tandem_.member_name(member) + " gave a result that is not a number";
    if (last_graph_ == nullptr || !last_graph_whole_ || tandem_.members() < 2) {
        log_error("tandem", what);
        poisoned_ = tandem_.members() > 1;
        return;
    }
    const Plan plan = plan_for(last_graph_);
    if (repeat(last_graph_, plan, member) != GGML_STATUS_SUCCESS) {
        for (size_t i = 0; i < backends_.size(); ++i) wait(i);
        failed(member);
        poisoned_ = true;
        return;
    }
    for (const Read& read : reads) read_on(last_, &read.tensor, read.data, read.offset, read.size);
    for (size_t i = 0; i < backends_.size(); ++i) wait(i);
    if (std::any_of(reads.begin(), reads.end(), wrong))
        log_warning("tandem", what + ", and so did " + tandem_.member_name(last_));
    else
        failed(member);
}

}  // namespace onebit::tandem
