// The C functions for programs, queues and semaphores.
#include "hrx/runtime/handles.h"

using namespace onebit;
using namespace onebit::hrx::runtime;

// ---- programs ----

hrx_result hrx_program_create(hrx_device* device, uint32_t flags, hrx_program** program) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        if ((flags & ~uint32_t{HRX_PROGRAM_PROFILE}) != 0) {
            return invalid_argument("flags of a program", "bits of hrx_program_flag", hexadecimal(flags));
        }
        *program = reinterpret_cast<hrx_program*>(new Program(*object(device), (flags & HRX_PROGRAM_PROFILE) != 0));
        return {};
    });
}

void hrx_program_retain(hrx_program* program) {
    if (program != nullptr) object(program)->retain();
}
void hrx_program_release(hrx_program* program) {
    if (program != nullptr) object(program)->release();
}

hrx_result hrx_program_dispatch(hrx_program* program, const hrx_dispatch* dispatch, uint32_t* index) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(dispatch, "dispatch"));
        return give_value(object(program)->dispatch(*dispatch), index);
    });
}

hrx_result hrx_program_copy(hrx_program* program, hrx_buffer* destination, uint64_t destination_offset,
                            hrx_buffer* source, uint64_t source_offset, uint64_t size, uint32_t* index) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(destination, "destination"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(source, "source"));
        return give_value(
            object(program)->copy(*object(destination), destination_offset, *object(source), source_offset, size),
            index);
    });
}

hrx_result hrx_program_fill(hrx_program* program, hrx_buffer* destination, uint64_t offset, uint64_t size,
                            uint32_t pattern, uint32_t pattern_size, uint32_t* index) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(destination, "destination"));
        return give_value(object(program)->fill(*object(destination), offset, size, pattern, pattern_size), index);
    });
}

hrx_result hrx_program_barrier(hrx_program* program) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        return object(program)->barrier();
    });
}

hrx_result hrx_program_timestamp(hrx_program* program, uint32_t* slot) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        return give_value(object(program)->timestamp(), slot);
    });
}

hrx_result hrx_program_finish(hrx_program* program) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        return object(program)->finish();
    });
}

hrx_result hrx_program_patch(hrx_program* program, const hrx_patch* patches, uint32_t count) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        if (count != 0) ONEBIT_RETURN_IF_ERROR(check_pointer(patches, "patches"));
        return object(program)->patch({patches, count});
    });
}

hrx_result hrx_program_patch_constants(hrx_program* program, uint32_t command, uint32_t offset, const void* data,
                                       uint32_t size) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        return object(program)->patch_constants(command, offset, data, size);
    });
}

hrx_result hrx_program_timestamps(hrx_program* program, uint64_t* times, uint32_t count) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        if (count != 0) ONEBIT_RETURN_IF_ERROR(check_pointer(times, "times"));
        return object(program)->timestamps({times, count});
    });
}

hrx_result hrx_program_profile(hrx_program* program, hrx_profile_entry* entries, uint32_t count) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(program, "program"));
        if (count != 0) ONEBIT_RETURN_IF_ERROR(check_pointer(entries, "entries"));
        return object(program)->profile({entries, count});
    });
}

uint32_t hrx_program_command_count(const hrx_program* program) {
    return program == nullptr ? 0 : object(program)->command_count();
}

// ---- semaphores ----

hrx_result hrx_semaphore_create(hrx_device* device, uint64_t initial_value, hrx_semaphore** semaphore) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(semaphore, "semaphore"));
        *semaphore = reinterpret_cast<hrx_semaphore*>(new Semaphore(*object(device), initial_value));
        return {};
    });
}

void hrx_semaphore_retain(hrx_semaphore* semaphore) {
    if (semaphore != nullptr) object(semaphore)->retain();
}
void hrx_semaphore_release(hrx_semaphore* semaphore) {
    if (semaphore != nullptr) object(semaphore)->release();
}

hrx_result hrx_semaphore_query(hrx_semaphore* semaphore, uint64_t* value) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(semaphore, "semaphore"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(value, "value"));
        return give_value(object(semaphore)->query(), value);
    });
}

hrx_result hrx_semaphore_signal(hrx_semaphore* semaphore, uint64_t value) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(semaphore, "semaphore"));
        return object(semaphore)->signal(value);
    });
}

hrx_result hrx_semaphore_wait(hrx_semaphore* semaphore, uint64_t value, uint64_t timeout) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(semaphore, "semaphore"));
        return object(semaphore)->wait(value, timeout);
    });
}

// ---- queues ----

hrx_result hrx_queue_create(hrx_device* device, hrx_queue** queue) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(device, "device"));
        ONEBIT_RETURN_IF_ERROR(check_pointer(queue, "queue"));
        return give(Queue::create(*object(device)), queue);
    });
}

void hrx_queue_retain(hrx_queue* queue) {
    if (queue != nullptr) object(queue)->retain();
}
void hrx_queue_release(hrx_queue* queue) {
    if (queue != nullptr) object(queue)->release();
}

namespace {

Result<std::vector<SemaphoreValue>> gather(const Device& device, const hrx_semaphore_value* values, uint32_t count,
                                           const char* list) {
    std::vector<SemaphoreValue> gathered;
    if (count == 0) return gathered;
    const auto pointer = check_pointer(values, list);
    if (!pointer.ok()) return pointer.error();
    gathered.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
        Semaphore* semaphore = object(values[i].semaphore);
        const auto given = check_pointer(semaphore, "semaphore");
        if (!given.ok()) return given.error();
        if (&semaphore->device() != &device) {
            return invalid_argument(list, "semaphores of the queue's device", "one of another device");
        }
        gathered.push_back({Ref<Semaphore>::share(semaphore), values[i].value});
    }
    return gathered;
}

}  // namespace

hrx_result hrx_queue_submit(hrx_queue* queue, hrx_program* program, const hrx_semaphore_value* waits,
                            uint32_t wait_count, const hrx_semaphore_value* signals, uint32_t signal_count) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(queue, "queue"));
        const Device& device = object(queue)->device();
        Submission submission;
        if (program != nullptr) {
            if (&object(program)->device() != &device) {
                return invalid_argument("program", "one of the queue's device", "one of another device");
            }
            ONEBIT_RETURN_IF_ERROR(object(program)->check_finished());
            submission.program = Ref<Program>::share(object(program));
        }
        auto waiting = gather(device, waits, wait_count, "waits");
        if (!waiting.ok()) return std::move(waiting).error();
        auto signalling = gather(device, signals, signal_count, "signals");
        if (!signalling.ok()) return std::move(signalling).error();
        submission.waits = std::move(*waiting);
        submission.signals = std::move(*signalling);
        return object(queue)->submit(std::move(submission));
    });
}

hrx_result hrx_queue_wait_idle(hrx_queue* queue, uint64_t timeout) {
    return guarded([&]() -> Result<void> {
        ONEBIT_RETURN_IF_ERROR(check_pointer(queue, "queue"));
        return object(queue)->wait_idle(timeout);
    });
}
