// A tandem: one owner whose memory the guests map, and the rule that sends each graph to one of them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "ggml-backend-impl.h"
#include "tandem/counters.h"
#include "tandem/guest.h"
#include "tandem/owner.h"
#include "tandem/route.h"
#include "tandem/settings.h"
#include "tandem/shared_buffer.h"

namespace onebit::tandem {

class Stream;

// Threads: any; a stream is used by one thread at a time, as every ggml backend is.
class Tandem {
public:
    // Makes the owner and the guests, probes that they can share, and tries it with one small buffer. The error names
    // the member and what it lacks.
    static Result<std::unique_ptr<Tandem>> make(const Settings& settings, std::string name);
    Tandem(const Tandem&) = delete;
    Tandem& operator=(const Tandem&) = delete;
    ~Tandem();

    const std::string& name() const { return name_; }
    const std::string& description() const { return description_; }
    const Settings& settings() const { return settings_; }
    Owner& owner() { return *owner_; }

    // Member 0 is the owner, member i the guest i - 1.
    size_t members() const { return devices_.size(); }
    ggml_backend_dev_t device(size_t member) const { return devices_[member]; }
    const char* member_name(size_t member) const { return names_[member].c_str(); }

    // Whose host memory the programs' inputs and results lie in.
    size_t pinning_member() const;
    // Host memory for results: pinned for the member that makes tokens, which copies one row of logits each. Null:
    // none.
    ggml_backend_buffer_type_t host_buffer_type() const;

    // Whether the member has a kernel for the node and may be used.
    bool supports(size_t member, const ggml_tensor* node) const;
    // Pure: the same graph has the same plan until route_version() changes or a member is dropped.
    Plan plan(const ggml_cgraph* graph) const;
    // Whether the owner runs a phase of the route or of an earlier one.
    bool owner_takes_part() const { return owner_takes_part_.load(std::memory_order_relaxed); }
    // Another route from the next graph on: members by number, and the tokens from which on a graph is prefill.
    void set_route(size_t prefill, size_t decode, int64_t min_tokens);
    // Changes with set_route() and with the calling thread's ForcedMember.
    uint64_t route_version() const;
    void drop(size_t member);

    // Layout: the largest of what the members ask for.
    size_t alloc_size(const ggml_tensor* tensor) const;
    // Grows when another tandem with a stricter guest shares the owner.
    size_t alignment() const;
    size_t max_size() const { return max_size_; }

    // A shared buffer, or the error of the member that refused.
    Result<ggml_backend_buffer_t> allocate(size_t size);

    // What the functions of a shared buffer call. Complete on return, but for writes to compute buffers that the
    // thread's stream keeps for its next graph.
    void write(SharedBuffer& shared, ggml_tensor* tensor, const void* data, size_t offset, size_t size);
    void read(SharedBuffer& shared, const ggml_tensor* tensor, void* data, size_t offset, size_t size);
    void flush(const Stream* except = nullptr);  // writes that wait in any stream, or any other one
    void forget(SharedBuffer& shared);           // the buffer is about to be freed

    void attach(Stream* stream);
    void detach(Stream* stream);
    // The stream that the calling thread used last, if it is one of this tandem's.
    Stream* thread_stream();
    void set_thread_stream(Stream* stream);
    // Guards the writes that wait in streams.
    std::recursive_mutex& mutex() { return mutex_; }
    std::atomic<size_t>& last_member() { return last_member_; }

    Counters& counters() { return *counters_; }
    Counts counts() const;

    // Whether the fault of the settings happens now: counts the events of that kind on that member.
    bool fault(Fault::Kind kind, size_t member);
    // The faults that end the process: does not return from an abort or a hang, throws for a lost device.
    void cause_fatal_fault(size_t member);

    // 0 when no member works at a graph.
    static void mark_running(size_t member_plus_one);

    ggml_backend_buffer_type& buffer_type() { return buffer_type_; }

private:
    Tandem(Settings settings, std::string name);
    Result<void> open();
    Result<void> check_sharing();
    Result<size_t> member_of(const std::string& device);

    Settings settings_;
    std::string name_, description_;
    std::unique_ptr<Owner> owner_;
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<ggml_backend_dev_t> devices_;
    std::vector<std::string> names_;
    std::vector<MemoryKind> kinds_;  // how each guest maps
    RouteRule rule() const;

    mutable std::mutex rule_mutex_;
    RouteRule rule_;
    std::atomic<uint64_t> rule_version_{0};
    std::atomic<bool> owner_takes_part_{false};
    size_t alignment_ = 1, max_size_ = 0;
    std::vector<std::pair<size_t, std::string>> denied_;
    std::unique_ptr<Counters> counters_;
    std::recursive_mutex mutex_;
    std::vector<Stream*> streams_;
    std::atomic<size_t> last_member_{0};
    std::atomic<uint64_t> fault_events_{0};
    ggml_backend_buffer_type buffer_type_ = {};
};

}  // namespace onebit::tandem
