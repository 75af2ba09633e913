#include "tandem/tandem.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/log.h"
#include "tandem/forced_member.h"
#include "tandem/owner_type.h"
#include "tandem/stream.h"

namespace onebit::tandem {
namespace {

constexpr size_t canary_bytes = 256;

thread_local Stream* this_thread_stream = nullptr;

std::mutex all_mutex;
std::vector<Tandem*> all;

std::atomic<std::atomic<uint64_t>*> running_word{nullptr};

std::array<uint8_t, canary_bytes> pattern(size_t seed) {
    std::array<uint8_t, canary_bytes> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>((i + 1) * 167 + seed * 59 + (i >> 3));
    return bytes;
}

}  // namespace

Result<void> set_tandem_route(const std::string& name, const std::string& prefill, const std::string& decode,
                              int64_t min_tokens) {
    const std::lock_guard lock(all_mutex);
    for (Tandem* tandem : all) {
        if (tandem->name() != name) continue;
        size_t members[2] = {SIZE_MAX, SIZE_MAX};
        for (size_t i = 0; i < tandem->members(); ++i) {
            if (prefill == tandem->member_name(i)) members[0] = i;
            if (decode == tandem->member_name(i)) members[1] = i;
        }
        if (members[0] == SIZE_MAX || members[1] == SIZE_MAX || min_tokens < 1)
            return Error{ErrorCode::not_found, "route of " + name, "two of its members and at least one token",
                         prefill + ", " + decode + ", " + std::to_string(min_tokens), ""};
        tandem->set_route(members[0], members[1], min_tokens);
        return {};
    }
    return Error{ErrorCode::not_found, "device " + name, "a tandem of this process", "none of that name", ""};
}

std::vector<Counts> tandem_counts() {
    const std::lock_guard lock(all_mutex);
    std::vector<Counts> counts;
    counts.reserve(all.size());
    for (const Tandem* tandem : all) counts.push_back(tandem->counts());
    return counts;
}

void watch_running_member(std::atomic<uint64_t>* word) { running_word.store(word); }

void Tandem::mark_running(size_t member_plus_one) {
    if (std::atomic<uint64_t>* word = running_word.load(std::memory_order_relaxed))
        word->store(member_plus_one, std::memory_order_relaxed);
}

Tandem::Tandem(Settings settings, std::string name) : settings_(std::move(settings)), name_(std::move(name)) {}

Tandem::~Tandem() {
    const std::lock_guard lock(all_mutex);
    std::erase(all, this);
}

Result<std::unique_ptr<Tandem>> Tandem::make(const Settings& settings, std::string name) {
    std::unique_ptr<Tandem> tandem(new Tandem(settings, std::move(name)));
    ONEBIT_RETURN_IF_ERROR(tandem->open());
    const std::lock_guard lock(all_mutex);
    all.push_back(tandem.get());
    return tandem;
}

Result<size_t> Tandem::member_of(const std::string& device) {
    for (size_t i = 0; i < devices_.size(); ++i)
        if (device == member_name(i)) return i;
    // "guest:CPU" is the CPU as a guest of the CPU's own memory: two members on one device
    const size_t prefix = device.starts_with("guest:") && !devices_.empty() ? 6 : 0;
    ggml_backend_dev_t found = ggml_backend_dev_by_name(device.c_str() + prefix);
    if (found == nullptr)
        return Error{ErrorCode::not_found, "device " + device, "a device of this machine", "none of that name",
                     "1bit devices lists them"};
    if (devices_.empty()) {
        auto owner = make_owner(found);
        if (!owner) return std::move(owner).error();
        owner_ = std::move(*owner);
    } else {
        auto guest = make_guest(found);
        if (!guest) return std::move(guest).error();
        ONEBIT_RETURN_IF_ERROR((*guest)->probe(owner_->identity()));
        const MemoryKinds common = (*guest)->kinds() & owner_->kinds();
        if (common == 0)
            return Error{ErrorCode::unsupported, device, "a way to map the memory of " + owner_->identity().name,
                         "none in common", "use one of the two devices alone"};
        kinds_.push_back((common & dma_buf) ? dma_buf : (common & opaque_fd) ? opaque_fd : host_pointer);
        guests_.push_back(std::move(*guest));
    }
    devices_.push_back(found);
    names_.push_back(device);
    return devices_.size() - 1;
}

Result<void> Tandem::open() {
    auto owner = member_of(settings_.owner);
    if (!owner) return std::move(owner).error();
    auto prefill = member_of(settings_.prefill);
    if (!prefill) return std::move(prefill).error();
    auto decode = member_of(settings_.decode);
    if (!decode) return std::move(decode).error();
    rule_ = {*prefill, *decode, settings_.min_tokens, settings_.segments, settings_.strict};
    owner_takes_part_ = *prefill == 0 || *decode == 0;

    for (const auto& denied : settings_.deny) {
        const size_t slash = denied.find('/');
        bool known = false;
        for (size_t i = 0; i < members(); ++i)
            if (denied.substr(0, slash) == member_name(i)) {
                denied_.emplace_back(i, denied.substr(slash + 1));
                known = true;
            }
        if (!known)
            return Error{ErrorCode::usage, "tandem setting deny", "a member of the tandem",
                         "'" + denied.substr(0, slash) + "'", ""};
    }

    description_ = std::string("tandem of ") + member_name(0);
    max_size_ = settings_.region_limit != 0 ? settings_.region_limit : SIZE_MAX;
    for (size_t i = 0; i < members(); ++i) {
        if (i > 0) description_ += std::string(" and ") + member_name(i);
        ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device(i));
        alignment_ = std::max(alignment_, ggml_backend_buft_get_alignment(type));
        max_size_ = std::min(max_size_, ggml_backend_buft_get_max_size(type));
    }
    std::vector<ggml_backend_buffer_type_t> guest_types;
    for (size_t i = 1; i < members(); ++i) guest_types.push_back(ggml_backend_dev_buffer_type(device(i)));
    if (!guest_types.empty()) ask_all_members(ggml_backend_dev_buffer_type(device(0)), guest_types);
    counters_ = std::make_unique<Counters>(members());
    return check_sharing();
}

// The smallest proof that the members see one memory, before a model is loaded into it.
Result<void> Tandem::check_sharing() {
    auto buffer = allocate(size_t{64} * 1024);
    if (!buffer) return std::move(buffer).error();
    ggml_backend_buffer_free(*buffer);
    return {};
}

size_t Tandem::pinning_member() const {
    // whoever is forced to run a graph: the inputs lie where they were allocated
    const std::lock_guard lock(rule_mutex_);
    return ggml_backend_dev_host_buffer_type(device(rule_.decode)) != nullptr ? rule_.decode : 0;
}

ggml_backend_buffer_type_t Tandem::host_buffer_type() const {
    return ggml_backend_dev_host_buffer_type(device(pinning_member()));
}

bool Tandem::supports(size_t member, const ggml_tensor* node) const {
    if (counters_->members[member].dropped.load(std::memory_order_relaxed)) return false;
    for (const auto& [who, op] : denied_)
        if (who == member && op == ggml_op_desc(node)) return false;
    return ggml_backend_dev_supports_op(device(member), node);
}

Plan Tandem::plan(const ggml_cgraph* graph) const {
    return make_plan(graph, rule(), members(),
                     [this](size_t member, const ggml_tensor* node) { return supports(member, node); });
}

RouteRule Tandem::rule() const {
    const std::lock_guard lock(rule_mutex_);
    RouteRule rule = rule_;
    if (const auto forced = ForcedMember::current(); forced && *forced < members())
        rule.prefill = rule.decode = *forced;
    return rule;
}

void Tandem::set_route(size_t prefill, size_t decode, int64_t min_tokens) {
    const std::lock_guard lock(rule_mutex_);
    rule_.prefill = prefill;
    rule_.decode = decode;
    rule_.min_tokens = min_tokens;
    if (prefill == 0 || decode == 0) owner_takes_part_ = true;
    ++rule_version_;
}

uint64_t Tandem::route_version() const {
    const auto forced = ForcedMember::current();
    return rule_version_.load(std::memory_order_acquire) * 256 + (forced ? *forced % 255 + 1 : 0);
}

void Tandem::drop(size_t member) {
    if (!counters_->members[member].dropped.exchange(true))
        log_error("tandem", name_ + ": " + member_name(member) + " failed repeatedly and is not used any more");
}

size_t Tandem::alignment() const {
    return std::max(alignment_, ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(device(0))));
}

size_t Tandem::alloc_size(const ggml_tensor* tensor) const {
    size_t size = 0;
    for (size_t i = 0; i < members(); ++i)
        size = std::max(size, ggml_backend_buft_get_alloc_size(ggml_backend_dev_buffer_type(device(i)), tensor));
    return size;
}

Result<ggml_backend_buffer_t> Tandem::allocate(size_t size) {
    const auto refused = [&](size_t member, const char* what) {
        return Error{ErrorCode::no_space, std::string(member_name(member)) + ", " + what, "success",
                     "a fault that was asked for", ""};
    };
    if (fault(Fault::Kind::allocate, 0)) return refused(0, "allocation");
    MemoryKinds kinds = 0;
    for (const MemoryKind kind : kinds_) kinds |= kind;
    auto allocated = owner_->allocate(size, kinds);
    if (!allocated) return std::move(allocated).error();
    auto shared = std::make_unique<SharedBuffer>();
    shared->tandem = this;
    shared->buffer = *allocated;
    shared->owner_base = static_cast<char*>(ggml_backend_buffer_get_base(*allocated));
    shared->host = settings_.staged ? nullptr : static_cast<char*>(owner_->host(*allocated));
    shared->size = size;
    shared->layout = std::make_unique<LayoutManifest>(size, alignment());
    const auto fail = [&](Error error) {
        shared->regions.clear();
        ggml_backend_buffer_free(*allocated);
        return error;
    };
    for (size_t i = 0; i < guests_.size(); ++i) {
        if (fault(Fault::Kind::map, i + 1)) return fail(refused(i + 1, "mapping"));
        auto memory = owner_->share(*allocated, kinds_[i]);
        if (!memory) return fail(std::move(memory).error());
        auto region = guests_[i]->map(std::move(*memory));
        if (!region) return fail(std::move(region).error());
        shared->regions.push_back(std::move(*region));
    }

    // a canary at both ends, in both directions: what one side writes the other must read at the same offset
    const size_t length = std::min(size & ~size_t{3}, canary_bytes);
    for (const size_t offset : {size_t{0}, (size - length) & ~size_t{63}}) {
        ggml_tensor tensor = bytes_of(*allocated, shared->owner_base + offset, length);
        for (size_t i = 0; i < guests_.size() && length > 0; ++i) {
            const auto out = pattern(i * 2 + offset), back = pattern(i * 2 + offset + 1);
            std::array<uint8_t, canary_bytes> read = {};
            (*allocated)->iface.set_tensor(*allocated, &tensor, out.data(), 0, length);
            const bool forth = shared->regions[i]->read(offset, read.data(), length) &&
                               std::memcmp(read.data(), out.data(), length) == 0;
            bool returned = shared->regions[i]->write(offset, back.data(), length);
            (*allocated)->iface.get_tensor(*allocated, &tensor, read.data(), 0, length);
            returned = returned && std::memcmp(read.data(), back.data(), length) == 0;
            if (!forth || !returned)
                return fail({ErrorCode::internal,
                             name_ + ", canary at byte " + std::to_string(offset) + " of " + std::to_string(size),
                             std::string("the same bytes on ") + member_name(0) + " and " + member_name(i + 1),
                             forth ? "another value on the way back" : "another value on the way there",
                             "use one device alone"});
        }
        if (length > 0) (*allocated)->iface.memset_tensor(*allocated, &tensor, 0, 0, length);
    }

    counters_->shared_bytes += size;
    ++counters_->shared_buffers;
    ggml_backend_buffer_t buffer = *allocated;
    SharedBuffers::instance().add(std::move(shared));
    return buffer;
}

void Tandem::write(SharedBuffer& shared, ggml_tensor* tensor, const void* data, size_t offset, size_t size) {
    // kept for a repeat, or because each write by itself would be a submit
    const bool keep = members() > 1 && (shared.host == nullptr || settings_.repeat);
    if (keep && shared.buffer->usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE && size > 0) {
        const std::lock_guard lock(mutex_);
        Stream* stream = thread_stream();
        if (stream != nullptr && shared.host == nullptr && size >= settings_.upload &&
            stream->upload(shared, shared.offset_of(tensor) + offset, data, size)) {
            ++counters_->direct_writes;
            return;
        }
        if (stream != nullptr && stream->keep(shared, shared.offset_of(tensor) + offset, data, size)) {
            if (shared.host == nullptr) {
                ++counters_->staged_writes;
                return;
            }
        }
    }
    ++counters_->direct_writes;
    if (shared.host == nullptr) {
        flush();
        const size_t member = last_member_;
        if (member > 0 && shared.regions[member - 1]->write(shared.offset_of(tensor) + offset, data, size)) return;
    }
    shared.original.set_tensor(shared.buffer, tensor, data, offset, size);
}

void Tandem::read(SharedBuffer& shared, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    if (shared.host == nullptr) {
        flush();
        const size_t member = last_member_;
        if (member > 0 && shared.regions[member - 1]->read(shared.offset_of(tensor) + offset, data, size)) return;
    }
    shared.original.get_tensor(shared.buffer, tensor, data, offset, size);
}

void Tandem::flush(const Stream* except) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_)
        if (stream != except) stream->deliver_now();
}

void Tandem::forget(SharedBuffer& shared) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) stream->forget(shared);
    counters_->shared_bytes -= shared.size;
    --counters_->shared_buffers;
}

void Tandem::attach(Stream* stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream);
}

void Tandem::detach(Stream* stream) {
    const std::lock_guard lock(mutex_);
    std::erase(streams_, stream);
}

Stream* Tandem::thread_stream() {
    const std::lock_guard lock(mutex_);
    const bool alive = std::find(streams_.begin(), streams_.end(), this_thread_stream) != streams_.end();
    return alive ? this_thread_stream : nullptr;
}

void Tandem::set_thread_stream(Stream* stream) { this_thread_stream = stream; }

Counts Tandem::counts() const {
    Counts counts;
    counts.tandem = name_;
    {
        const std::lock_guard lock(rule_mutex_);
        counts.prefill = member_name(rule_.prefill);
        counts.decode = member_name(rule_.decode);
        counts.min_tokens = static_cast<uint64_t>(rule_.min_tokens);
    }
    for (size_t i = 0; i < members(); ++i) {
        const MemberCounters& member = counters_->members[i];
        counts.members.push_back({member_name(i), member.graphs, member.prefill_graphs, member.prefill_tokens,
                                  member.decode_tokens, member.failures, member.dropped});
    }
    counts.handoffs = counters_->handoffs;
    counts.handoff_us = counters_->handoff_us;
    counts.repeats = counters_->repeats;
    counts.refused = counters_->refused;
    counts.staged_writes = counters_->staged_writes;
    counts.direct_writes = counters_->direct_writes;
    counts.staged_bytes = counters_->staged_bytes;
    counts.plan_us = counters_->plan_us;
    counts.input_us = counters_->input_us;
    counts.submit_us = counters_->submit_us;
    counts.wait_us = counters_->wait_us;
    counts.arranged = counters_->arranged;
    counts.prepared = counters_->prepared;
    counts.shadow_builds = counters_->shadow_builds;
    counts.shadow_hits = counters_->shadow_hits;
    counts.shared_bytes = counters_->shared_bytes;
    counts.shared_buffers = counters_->shared_buffers;
    counts.fallbacks = counters_->fallbacks();
    counts.last_error = counters_->last_error();
    return counts;
}

bool Tandem::fault(Fault::Kind kind, size_t member) {
    if (settings_.fault.kind != kind || settings_.fault.member != member_name(member)) return false;
    const uint64_t event = fault_events_++;
    return event >= settings_.fault.at && event - settings_.fault.at < settings_.fault.count;
}

void Tandem::cause_fatal_fault(size_t member) {
    if (fault(Fault::Kind::abort, member)) std::abort();
    if (fault(Fault::Kind::lost, member)) throw std::runtime_error("a loss that was asked for");
    if (fault(Fault::Kind::hang, member))
        for (;;) ::pause();
}

}  // namespace onebit::tandem
