// What a driver gives to the runtime: memory, kernels, recorded programs, channels that run them. Everything else
// (checks of arguments, lifetimes, timeline semaphores, patches) is done once above this line.
//
// Threads: each function may be called from any thread; calls on one Channel, and submits of one Recording, never
// overlap. Ownership: the runtime destroys everything of a device before the device, and no Memory, Image or Recording
// while a submission that uses it runs, unless the device is lost.
// Errors: io with the driver call as subject and its result as found; no_space when memory is short; unsupported where
// the driver cannot; cancelled from a Completion when the device will never finish.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hrx/runtime/hrx.h"

namespace onebit::hrx::runtime {

// Fills a field of hrx_device_info; what does not fit is cut.
template <size_t Size>
void set_text(char (&field)[Size], std::string_view text) {
    field[text.copy(field, Size - 1)] = '\0';
}

class Memory {
public:
    virtual ~Memory() = default;
    uint64_t address = 0;  // on the device
    void* host = nullptr;  // nullptr where it cannot be mapped
    uint64_t size = 0;     // as asked for
};

struct ExportedMemory {
    UniqueFd fd;
    uint64_t allocation_size = 0, offset = 0;
};

struct Kernel {
    std::string name;
    uint64_t object = 0;  // the driver's
    hrx_kernel_info info{};
};

class Image {
public:
    virtual ~Image() = default;
    // not_found for a name that it does not hold.
    virtual Result<Kernel> find(const std::string& name) = 0;
};

// One kernel launch. Its argument block is [argument_offset, + argument_bytes) of the program's arguments.
struct Launch {
    const Kernel* kernel = nullptr;
    uint32_t groups[3] = {1, 1, 1};   // none is 0
    uint32_t threads[3] = {1, 1, 1};  // none is 0
    uint32_t dynamic_lds_bytes = 0;
    uint32_t argument_offset = 0, argument_bytes = 0;
    bool barrier_before = false;  // all earlier launches have finished and their writes are visible
};

class Recording {
public:
    virtual ~Recording() = default;
};

// The arguments of all launches for one submission. Only [begin, end) may differ from the submission before it of the
// same recording. The bytes live during the call only.
struct Arguments {
    std::span<const std::byte> bytes;
    size_t begin = 0, end = 0;
};

class Completion {
public:
    virtual ~Completion() = default;
    // True when finished, false when the time (0: only look) has passed first. May be called by many threads at once.
    virtual Result<bool> wait(uint64_t nanoseconds) = 0;
    // Of a queue that was lost. The runtime's own note, under the timeline's lock.
    bool abandoned = false;
};

// Runs submissions one after another.
class Channel {
public:
    // May be called with work in flight only when the device is lost.
    virtual ~Channel() = default;
    // recording: nullptr for waits alone. Does not wait for the device but for room in a ring. waits: of this device,
    // any channel. What the host wrote before is visible to the launches, and their writes to whoever saw completion.
    virtual Result<std::shared_ptr<Completion>> submit(Recording* recording, const Arguments& arguments,
                                                       std::span<const std::shared_ptr<Completion>> waits) = 0;
};

class DriverDevice {
public:
    virtual ~DriverDevice() = default;
    virtual const hrx_device_info& info() const = 0;
    // Of the counter that the built-in timestamp kernel reads.
    virtual uint64_t ticks_per_second() const = 0;
    // Key of the built-in kernels' image: "gfx1151", "sm_80".
    virtual std::string builtin_target() const = 0;

    virtual Result<uint64_t> free_memory() = 0;
    virtual Result<std::unique_ptr<Memory>> allocate(hrx_memory kind, bool exportable, uint64_t size) = 0;
    // fd stays the caller's.
    virtual Result<std::unique_ptr<Memory>> import_fd(hrx_fd_kind kind, int fd, uint64_t allocation_size,
                                                      uint64_t offset, uint64_t size) = 0;
    virtual Result<std::unique_ptr<Memory>> import_host(void* pointer, uint64_t size) = 0;
    virtual Result<ExportedMemory> export_fd(const Memory& memory, hrx_fd_kind kind) = 0;
    // Memory without a host address only; ranges were checked, size is not 0. They return when done.
    virtual Result<void> write(const Memory& memory, uint64_t offset, const void* data, uint64_t size) = 0;
    virtual Result<void> read(const Memory& memory, uint64_t offset, void* data, uint64_t size) = 0;

    virtual Result<std::unique_ptr<Image>> load(std::span<const std::byte> image) = 0;
    // Kernels outlive the recording. argument_bytes: of all launches together, a multiple of 16.
    virtual Result<std::unique_ptr<Recording>> record(std::span<const Launch> launches, size_t argument_bytes) = 0;
    virtual Result<std::unique_ptr<Channel>> create_channel() = 0;
};

struct ProbeEntry {
    std::string origin, library, call, detail;
    bool started = false;
};

class Driver {
public:
    virtual ~Driver() = default;
    virtual const char* name() const = 0;
    // Called once. Adds an entry for each library that it tries; unavailable when none starts.
    virtual Result<void> start(std::vector<ProbeEntry>& tried) = 0;
    // After a successful start.
    virtual Result<uint32_t> device_count() = 0;
    virtual Result<std::unique_ptr<DriverDevice>> open(uint32_t index) = 0;
};

}  // namespace onebit::hrx::runtime
