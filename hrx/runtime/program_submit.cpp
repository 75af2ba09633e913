// Finished programs: patches, submissions, times.
#include <algorithm>
#include <cstring>

#include "hrx/runtime/program.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime {

uint64_t Program::bound_address(const Command& command, size_t binding) const {
    uint64_t address = 0;
    std::memcpy(&address, arguments_.data() + command.argument_offset + binding * 8, 8);
    return address;
}

Result<void> Program::check_patch(std::span<const hrx_patch> patches, size_t index) const {
    const hrx_patch& patch = patches[index];
    if (patch.command >= commands_.size()) {
        return invalid_argument("command to patch", "below " + number(commands_.size()), number(patch.command));
    }
    const Command& command = commands_[patch.command];
    if (patch.binding >= command.bindings.size()) {
        return invalid_argument("binding to patch of command " + number(patch.command),
                                "below " + number(command.bindings.size()), number(patch.binding));
    }
    ONEBIT_RETURN_IF_ERROR(check_binding(patch.value, command.needed_bytes));
    if (command.kind != Kind::copy) return {};
    uint64_t address[2] = {bound_address(command, 0), bound_address(command, 1)};
    for (const hrx_patch& other : patches) {
        if (other.command != patch.command || other.binding > 1 || other.value.buffer == nullptr) continue;
        address[other.binding] = reinterpret_cast<const Buffer*>(other.value.buffer)->address() + other.value.offset;
    }
    return check_overlap(address[0], address[1], command.needed_bytes);
}

// Of the patch of a dispatch, which is nearly every one: what check_patch() would say at several times the price.
bool Program::is_plain(const hrx_patch& patch) const {
    if (patch.command >= commands_.size()) return false;
    const Command& command = commands_[patch.command];
    const auto* buffer = reinterpret_cast<const Buffer*>(patch.value.buffer);
    if (command.kind != Kind::dispatch || patch.binding >= command.bindings.size() || buffer == nullptr) return false;
    return &buffer->device() == device_.get() && patch.value.offset <= buffer->size() &&
           patch.value.length <= buffer->size() - patch.value.offset;
}

Result<void> Program::patch(std::span<const hrx_patch> patches) {
    std::vector<Ref<Buffer>> unused;  // destroyed after the lock
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < patches.size(); ++i)
        if (!is_plain(patches[i])) ONEBIT_RETURN_IF_ERROR(check_patch(patches, i));
    // nothing below may fail half way
    unused.reserve(patches.size());
    replaced_.reserve(replaced_.size() + patches.size());
    for (const hrx_patch& patch : patches) {
        Command& command = commands_[patch.command];
        auto* buffer = reinterpret_cast<Buffer*>(patch.value.buffer);
        const uint64_t address = buffer->address() + patch.value.offset;
        set_argument(command.argument_offset + size_t{patch.binding} * 8, &address, 8);
        Bound& bound = command.bindings[patch.binding];
        if (bound.buffer.get() == buffer) continue;
        // a buffer that no submission has seen needs no keeping
        (bound.patched_at == submissions_ ? unused : replaced_).push_back(std::move(bound.buffer));
        bound.buffer = Ref<Buffer>::share(buffer);
        bound.patched_at = submissions_;
    }
    return {};
}

Result<void> Program::patch_constants(uint32_t index, uint32_t offset, const void* data, uint32_t size) {
    const std::lock_guard lock(mutex_);
    if (index >= commands_.size()) {
        return invalid_argument("command to patch", "below " + number(commands_.size()), number(index));
    }
    const Command& command = commands_[index];
    if (command.kind != Kind::dispatch) {
        return invalid_argument("constants to patch", "a dispatch", "a copy or fill");
    }
    if (offset > command.constant_bytes || size > command.constant_bytes - offset) {
        return invalid_argument("constants to patch", "a range within " + number(command.constant_bytes) + " bytes",
                                "offset " + number(offset) + ", size " + number(size));
    }
    if (size != 0 && data == nullptr) return invalid_argument("constants to patch", "a pointer to the data", "NULL");
    set_argument(command.argument_offset + command.bindings.size() * 8 + offset, data, size);
    return {};
}

Result<std::shared_ptr<Completion>> Program::launch(Channel& channel, Submission& submission,
                                                    std::vector<std::shared_ptr<Completion>> waits) {
    const std::lock_guard lock(mutex_);
    if (last_ != nullptr && last_->abandoned) return lost_before();
    if (last_ != nullptr && last_channel_ != &channel) {
        submission.after = last_;
        waits.push_back(last_);
    }
    const bool was_held = submission.held_id != 0;
    const Arguments arguments = was_held ? Arguments{submission.arguments, 0, submission.arguments.size()}
                                         : Arguments{arguments_, changed_begin_, changed_end_};
    auto launched = channel.submit(recording_.get(), arguments, waits);
    if (!launched.ok()) return launched;
    // what was kept for a held submission may differ anywhere from what is bound now
    changed_begin_ = 0;
    changed_end_ = was_held ? arguments_.size() : 0;
    if (!was_held) {
        submission.replaced.swap(replaced_);
        submissions_++;
    }
    last_ = *launched;
    last_channel_ = &channel;
    return launched;
}

Error Program::lost_before() {
    return Error{ErrorCode::cancelled, "program", "earlier submissions that finish", "one that was lost",
                 "record it again"};
}

void Program::hold_back(Submission& submission) {
    const std::lock_guard lock(mutex_);
    submission.arguments = arguments_;
    submission.replaced.swap(replaced_);
    submissions_++;
    submission.held_id = ++last_held_id_;
    held_.push_back(submission.held_id);
}

void Program::let_go(Submission& submission, bool launched) {
    std::erase(held_, submission.held_id);
    if (launched) return;
    // an earlier submission may still use them
    const std::lock_guard lock(mutex_);
    for (Ref<Buffer>& buffer : submission.replaced) replaced_.push_back(std::move(buffer));
    submission.replaced.clear();
}

uint64_t Program::stamp_time(size_t stamp) const {
    constexpr uint64_t nanoseconds = 1'000'000'000;
    const uint64_t rate = device_->driver().ticks_per_second();
    const uint64_t ticks = static_cast<const uint64_t*>(times_->memory().host)[stamp];
    // whole seconds apart, so that nothing overflows and nothing is rounded
    return ticks / rate * nanoseconds + ticks % rate * nanoseconds / rate;
}

Result<void> Program::timestamps(std::span<uint64_t> times) {
    ONEBIT_RETURN_IF_ERROR(check_finished());
    const size_t slots = profile_ ? 0 : stamp_arguments_.size();
    if (times.size() > slots) {
        return invalid_argument("hrx_program_timestamps", "at most " + number(slots) + " slots", number(times.size()));
    }
    if (times.empty()) return {};
    for (size_t i = 0; i < times.size(); ++i) times[i] = stamp_time(i);
    return {};
}

Result<void> Program::profile(std::span<hrx_profile_entry> entries) {
    ONEBIT_RETURN_IF_ERROR(check_finished());
    if (!profile_) {
        return Error{ErrorCode::conflict, "hrx_program_profile", "a program with HRX_PROGRAM_PROFILE", "one without",
                     ""};
    }
    if (entries.size() > commands_.size()) {
        return invalid_argument("hrx_program_profile", "at most " + number(commands_.size()) + " entries",
                                number(entries.size()));
    }
    if (entries.empty()) return {};
    for (size_t i = 0; i < entries.size(); ++i) {
        const Command& command = commands_[i];
        entries[i].name = command.kind == Kind::copy   ? "copy"
                          : command.kind == Kind::fill ? "fill"
                                                       : command.kernel->name.c_str();
        entries[i].begin = stamp_time(profile_stamps_[i]);
        entries[i].end = stamp_time(profile_stamps_[i + 1]);
    }
    return {};
}

}  // namespace onebit::hrx::runtime
