// Recording of programs: checks, argument blocks, launches.
#include <algorithm>
#include <cstring>

#include "hrx/runtime/program.h"
#include "hrx/runtime/status.h"

namespace onebit::hrx::runtime {
namespace {

constexpr uint32_t most_bindings = 1024, most_constant_bytes = 64u << 10;
constexpr size_t most_argument_bytes = size_t{1} << 30;
// Argument blocks begin at multiples of this: what AMD's kernarg segment asks for.
constexpr size_t block_alignment = 16;
constexpr uint32_t blit_threads = 256, blit_bytes_per_thread = 64;

size_t round_up(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

std::string shape(const uint32_t (&size)[3]) {
    return number(size[0]) + " x " + number(size[1]) + " x " + number(size[2]);
}

Launch blit_launch(const Device& device, uint64_t bytes) {
    const uint64_t most = uint64_t{device.info().compute_units} * 8;
    const uint64_t groups = bytes / (uint64_t{blit_threads} * blit_bytes_per_thread) + 1;
    Launch launch;
    launch.groups[0] = static_cast<uint32_t>(std::clamp<uint64_t>(groups, 1, std::max<uint64_t>(most, 1)));
    launch.threads[0] = blit_threads;
    return launch;
}

}  // namespace

Program::Program(Device& device, bool profile) : device_(Ref<Device>::share(&device)), profile_(profile) {}
Program::~Program() { recording_.reset(); }

uint32_t Program::command_count() const {
    const std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(commands_.size());
}

Result<void> Program::check_recording() const {
    if (!finished_) return {};
    return Error{ErrorCode::conflict, "program", "recording", "finished", "record another program, or patch this one"};
}

Result<void> Program::check_finished() const {
    const std::lock_guard lock(mutex_);
    if (finished_) return {};
    return Error{ErrorCode::conflict, "program", "finished", "recording", "call hrx_program_finish first"};
}

Result<void> Program::check_binding(const hrx_binding& binding, uint64_t needed) const {
    const auto* buffer = reinterpret_cast<const Buffer*>(binding.buffer);
    if (buffer == nullptr) return invalid_argument("binding", "a buffer", "NULL");
    if (&buffer->device() != device_.get()) {
        return invalid_argument("binding", "a buffer of the program's device", "one of another device");
    }
    ONEBIT_RETURN_IF_ERROR(buffer->check_range("binding", binding.offset, binding.length));
    const uint64_t length = binding.length != 0 ? binding.length : buffer->size() - binding.offset;
    if (length >= needed) return {};
    return invalid_argument("binding", "at least " + number(needed) + " bytes", number(length));
}

Result<void> Program::check_overlap(uint64_t destination, uint64_t source, uint64_t size) const {
    const uint64_t distance = destination > source ? destination - source : source - destination;
    if (distance >= size) return {};
    return invalid_argument("copy", "ranges that do not overlap",
                            number(size) + " bytes, " + number(distance) + " apart");
}

Result<void> Program::check_kernel(const hrx_dispatch& dispatch, const Kernel& kernel) const {
    const hrx_device_info& limits = device_->info();
    const std::string subject = "dispatch of " + kernel.name;
    uint64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
        if (dispatch.workgroup_size[i] == 0 || dispatch.workgroup_size[i] > limits.max_workgroup_dimension[i]) {
            return invalid_argument(subject,
                                    "a workgroup of at least 1 and at most " + shape(limits.max_workgroup_dimension),
                                    shape(dispatch.workgroup_size));
        }
        if (dispatch.workgroup_count[i] > limits.max_workgroup_count[i]) {
            return invalid_argument(subject, "at most " + shape(limits.max_workgroup_count) + " workgroups",
                                    shape(dispatch.workgroup_count));
        }
        if (uint64_t{dispatch.workgroup_count[i]} * dispatch.workgroup_size[i] > UINT32_MAX) {
            return invalid_argument(
                subject, "at most " + number(UINT32_MAX) + " work-items in a dimension",
                shape(dispatch.workgroup_count) + " workgroups of " + shape(dispatch.workgroup_size));
        }
        threads *= dispatch.workgroup_size[i];
    }
    uint64_t most = limits.max_workgroup_size;
    if (kernel.info.max_workgroup_size != 0) most = std::min<uint64_t>(most, kernel.info.max_workgroup_size);
    if (threads > most) {
        return invalid_argument(subject, "a workgroup of at most " + number(most) + " work-items", number(threads));
    }
    const uint64_t lds = uint64_t{kernel.info.static_lds_bytes} + dispatch.dynamic_lds_bytes;
    if (lds > limits.lds_bytes) {
        return invalid_argument(subject, "at most " + number(limits.lds_bytes) + " bytes of LDS",
                                number(kernel.info.static_lds_bytes) + " of the kernel and " +
                                    number(dispatch.dynamic_lds_bytes) + " dynamic");
    }
    if (dispatch.binding_count > most_bindings || dispatch.constant_bytes > most_constant_bytes) {
        return invalid_argument(
            subject,
            "at most " + number(most_bindings) + " bindings and " + number(most_constant_bytes) + " bytes of constants",
            number(dispatch.binding_count) + " and " + number(dispatch.constant_bytes));
    }
    if ((dispatch.bindings == nullptr && dispatch.binding_count != 0) ||
        (dispatch.constants == nullptr && dispatch.constant_bytes != 0)) {
        return invalid_argument(subject, "pointers to its bindings and constants", "NULL");
    }
    const size_t bytes = round_up(size_t{dispatch.binding_count} * 8 + dispatch.constant_bytes, 8);
    if (bytes < kernel.info.argument_bytes) {
        return invalid_argument(subject, number(kernel.info.argument_bytes) + " bytes of arguments",
                                number(dispatch.binding_count) + " bindings of 8 bytes and " +
                                    number(dispatch.constant_bytes) + " of constants");
    }
    return {};
}

Result<uint32_t> Program::append(Command command, Launch launch, bool empty, std::span<const hrx_binding> bindings,
                                 const void* constants) {
    launch.kernel = command.kernel;
    launch.argument_bytes = static_cast<uint32_t>(round_up(bindings.size() * 8 + command.constant_bytes, 8));
    const size_t offset = arguments_.size();
    if (offset + launch.argument_bytes > most_argument_bytes) {
        return Error{ErrorCode::no_space, "arguments of a program", "at most " + number(most_argument_bytes) + " bytes",
                     "more", "split the program"};
    }
    if (profile_ && profile_stamps_.empty()) ONEBIT_RETURN_IF_ERROR(append_stamp());
    command.argument_offset = launch.argument_offset = static_cast<uint32_t>(arguments_.size());
    arguments_.resize(arguments_.size() + round_up(launch.argument_bytes, block_alignment));
    for (size_t i = 0; i < bindings.size(); ++i) {
        auto* buffer = reinterpret_cast<Buffer*>(bindings[i].buffer);
        command.bindings.push_back({Ref<Buffer>::share(buffer), 0});
        const uint64_t address = buffer->address() + bindings[i].offset;
        set_argument(command.argument_offset + i * 8, &address, 8);
    }
    set_argument(command.argument_offset + bindings.size() * 8, constants, command.constant_bytes);
    if (!empty) {
        launch.barrier_before = std::exchange(barrier_pending_, false);
        launches_.push_back(launch);
    }
    commands_.push_back(std::move(command));
    if (profile_) ONEBIT_RETURN_IF_ERROR(append_stamp());
    return static_cast<uint32_t>(commands_.size() - 1);
}

Result<uint32_t> Program::dispatch(const hrx_dispatch& dispatch) {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    auto* executable = reinterpret_cast<Executable*>(dispatch.executable);
    if (executable == nullptr) return invalid_argument("dispatch", "an executable", "NULL");
    if (&executable->device() != device_.get()) {
        return invalid_argument("dispatch", "an executable of the program's device", "one of another device");
    }
    const auto kernel = executable->kernel(dispatch.kernel);
    if (!kernel.ok()) return kernel.error();
    ONEBIT_RETURN_IF_ERROR(check_kernel(dispatch, **kernel));
    const std::span bindings(dispatch.bindings, dispatch.binding_count);
    for (const hrx_binding& binding : bindings) ONEBIT_RETURN_IF_ERROR(check_binding(binding, 0));

    Command command;
    command.kernel = *kernel;
    command.executable = Ref<Executable>::share(executable);
    command.constant_bytes = dispatch.constant_bytes;
    Launch launch;
    bool empty = false;
    for (int i = 0; i < 3; ++i) {
        launch.groups[i] = dispatch.workgroup_count[i];
        launch.threads[i] = dispatch.workgroup_size[i];
        empty |= launch.groups[i] == 0;
    }
    launch.dynamic_lds_bytes = dispatch.dynamic_lds_bytes;
    return append(std::move(command), launch, empty, bindings, dispatch.constants);
}

Result<uint32_t> Program::copy(Buffer& destination, uint64_t destination_offset, Buffer& source, uint64_t source_offset,
                               uint64_t size) {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    const hrx_binding bindings[] = {{reinterpret_cast<hrx_buffer*>(&destination), destination_offset, 0},
                                    {reinterpret_cast<hrx_buffer*>(&source), source_offset, 0}};
    for (const hrx_binding& binding : bindings) ONEBIT_RETURN_IF_ERROR(check_binding(binding, size));
    ONEBIT_RETURN_IF_ERROR(
        check_overlap(destination.address() + destination_offset, source.address() + source_offset, size));
    const auto kernel = device_->builtin("hrx_copy");
    if (!kernel.ok()) return kernel.error();
    Command command;
    command.kind = Kind::copy;
    command.kernel = *kernel;
    command.needed_bytes = size;
    const Launch launch = blit_launch(*device_, size);
    const struct {
        uint64_t size;
        uint32_t groups, unused;
    } constants{size, launch.groups[0], 0};
    command.constant_bytes = sizeof constants;
    return append(std::move(command), launch, size == 0, bindings, &constants);
}

Result<uint32_t> Program::fill(Buffer& destination, uint64_t offset, uint64_t size, uint32_t pattern,
                               uint32_t pattern_size) {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    if (pattern_size != 1 && pattern_size != 2 && pattern_size != 4) {
        return invalid_argument("pattern of a fill", "1, 2 or 4 bytes", number(pattern_size));
    }
    if (offset % pattern_size != 0 || size % pattern_size != 0) {
        return invalid_argument("fill", "offset and size that are multiples of " + number(pattern_size),
                                "offset " + number(offset) + ", size " + number(size));
    }
    const hrx_binding binding{reinterpret_cast<hrx_buffer*>(&destination), offset, 0};
    ONEBIT_RETURN_IF_ERROR(check_binding(binding, size));
    const auto kernel = device_->builtin("hrx_fill");
    if (!kernel.ok()) return kernel.error();
    // the kernel knows words only
    if (pattern_size == 1) pattern = (pattern & 0xFF) * 0x01010101u;
    if (pattern_size == 2) pattern = (pattern & 0xFFFF) * 0x00010001u;
    Command command;
    command.kind = Kind::fill;
    command.kernel = *kernel;
    command.needed_bytes = size;
    const Launch launch = blit_launch(*device_, size);
    const struct {
        uint64_t size;
        uint32_t pattern, groups;
    } constants{size, pattern, launch.groups[0]};
    command.constant_bytes = sizeof constants;
    return append(std::move(command), launch, size == 0, {&binding, 1}, &constants);
}

Result<void> Program::barrier() {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    barrier_pending_ = true;
    return {};
}

Result<void> Program::append_stamp() {
    const auto kernel = device_->builtin("hrx_timestamp");
    if (!kernel.ok()) return kernel.error();
    Launch launch;
    launch.kernel = *kernel;
    launch.argument_offset = static_cast<uint32_t>(arguments_.size());
    launch.argument_bytes = 8;
    launch.barrier_before = true;
    arguments_.resize(arguments_.size() + block_alignment);
    launches_.push_back(launch);
    barrier_pending_ = true;
    stamp_arguments_.push_back(launch.argument_offset);
    if (profile_) profile_stamps_.push_back(static_cast<uint32_t>(stamp_arguments_.size() - 1));
    return {};
}

Result<uint32_t> Program::timestamp() {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    if (profile_) {
        return Error{ErrorCode::conflict, "timestamp", "a program without HRX_PROGRAM_PROFILE", "one with it",
                     "read hrx_program_profile, which has the times of each command"};
    }
    ONEBIT_RETURN_IF_ERROR(append_stamp());
    return static_cast<uint32_t>(stamp_arguments_.size() - 1);
}

Result<void> Program::finish() {
    const std::lock_guard lock(mutex_);
    ONEBIT_RETURN_IF_ERROR(check_recording());
    if (!stamp_arguments_.empty() && !times_) {
        auto times = Buffer::allocate(*device_, HRX_MEMORY_HOST, 0, stamp_arguments_.size() * 8);
        if (!times.ok()) return std::move(times).error();
        times_ = *times;
        std::memset(times_->memory().host, 0, times_->size());
        for (size_t i = 0; i < stamp_arguments_.size(); ++i) {
            const uint64_t address = times_->address() + i * 8;
            set_argument(stamp_arguments_[i], &address, 8);
        }
    }
    auto recording = device_->driver().record(launches_, arguments_.size());
    if (!recording.ok()) return std::move(recording).error();
    recording_ = std::move(*recording);
    changed_begin_ = 0;
    changed_end_ = arguments_.size();
    finished_ = true;
    return {};
}

void Program::set_argument(size_t offset, const void* data, size_t size) {
    if (size == 0) return;
    std::memcpy(arguments_.data() + offset, data, size);
    if (changed_begin_ == changed_end_) {
        changed_begin_ = offset;
        changed_end_ = offset + size;
    } else {
        changed_begin_ = std::min(changed_begin_, offset);
        changed_end_ = std::max(changed_end_, offset + size);
    }
}

}  // namespace onebit::hrx::runtime
