// A recorded program: its launches, the argument block of each, and what keeps both right while submissions run.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/objects.h"
#include "hrx/runtime/ref.h"
#include "hrx/runtime/timeline.h"

namespace onebit::hrx::runtime {

class Program final : public Counted {
public:
    Program(Device& device, bool profile);
    ~Program() override;

    Device& device() const { return *device_; }
    uint32_t command_count() const;

    Result<uint32_t> dispatch(const hrx_dispatch& dispatch);
    Result<uint32_t> copy(Buffer& destination, uint64_t destination_offset, Buffer& source, uint64_t source_offset,
                          uint64_t size);
    Result<uint32_t> fill(Buffer& destination, uint64_t offset, uint64_t size, uint32_t pattern, uint32_t pattern_size);
    Result<void> barrier();
    Result<uint32_t> timestamp();
    Result<void> finish();

    Result<void> patch(std::span<const hrx_patch> patches);
    Result<void> patch_constants(uint32_t command, uint32_t offset, const void* data, uint32_t size);
    Result<void> timestamps(std::span<uint64_t> times);
    Result<void> profile(std::span<hrx_profile_entry> entries);
    Result<void> check_finished() const;

    // For Queue, with the timeline's mutex held.
    // waits grows by the program's own last submission where that is needed.
    Result<std::shared_ptr<Completion>> launch(Channel& channel, Submission& submission,
                                               std::vector<std::shared_ptr<Completion>> waits);
    // Keeps the arguments as they are now for a submission that is launched later.
    void hold_back(Submission& submission);
    // launched: or else lost.
    void let_go(Submission& submission, bool launched);
    static Error lost_before();
    // Submissions of one program are launched in the order in which they were made.
    bool may_launch(uint64_t held_id) const { return held_.empty() || held_.front() == held_id; }

private:
    enum class Kind { dispatch, copy, fill };
    struct Bound {
        Ref<Buffer> buffer;
        uint64_t patched_at = 0;  // count of submissions then
    };
    struct Command {
        Kind kind = Kind::dispatch;
        const Kernel* kernel = nullptr;
        Ref<Executable> executable;  // empty for the built-in kernels
        std::vector<Bound> bindings;
        uint64_t needed_bytes = 0;  // of each binding of a copy or fill
        uint32_t argument_offset = 0, constant_bytes = 0;
    };

    Result<void> check_recording() const;
    Result<void> check_kernel(const hrx_dispatch& dispatch, const Kernel& kernel) const;
    Result<void> check_binding(const hrx_binding& binding, uint64_t needed) const;
    Result<void> check_overlap(uint64_t destination, uint64_t source, uint64_t size) const;
    bool is_plain(const hrx_patch& patch) const;
    Result<void> check_patch(std::span<const hrx_patch> patches, size_t index) const;
    Result<uint32_t> append(Command command, Launch launch, bool empty, std::span<const hrx_binding> bindings,
                            const void* constants);
    Result<void> append_stamp();
    void set_argument(size_t offset, const void* data, size_t size);
    uint64_t stamp_time(size_t stamp) const;
    uint64_t bound_address(const Command& command, size_t binding) const;

    const Ref<Device> device_;
    const bool profile_;
    mutable std::mutex mutex_;  // after the timeline's where both are held
    bool finished_ = false, barrier_pending_ = false;
    std::vector<Command> commands_;
    std::vector<Launch> launches_;           // of commands that are not empty, and of stamps
    std::vector<uint32_t> stamp_arguments_;  // offset of the argument block of each stamp
    std::vector<uint32_t> profile_stamps_;   // one before the first command, one after each
    std::vector<std::byte> arguments_;
    size_t changed_begin_ = 0, changed_end_ = 0;
    std::vector<Ref<Buffer>> replaced_;
    uint64_t submissions_ = 0;
    Ref<Buffer> times_;
    std::unique_ptr<Recording> recording_;  // destroyed before the memory and kernels that it names

    // guarded by the timeline's mutex
    std::shared_ptr<Completion> last_;
    Channel* last_channel_ = nullptr;
    std::deque<uint64_t> held_;
    uint64_t last_held_id_ = 0;
};

}  // namespace onebit::hrx::runtime
