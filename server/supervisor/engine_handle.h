// An engine as the fleet and the proxy see it: EngineProcess in the program, a fake in tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"
#include "server/supervisor/engine_process.h"
#include "server/supervisor/stream_table.h"

namespace onebit {

// Thread rules: every member function may be called from any thread.
class EngineHandle {
public:
    virtual ~EngineHandle() = default;
    virtual EngineStatus status() const = 0;
    virtual std::filesystem::path socket() const = 0;
    virtual uint64_t generation() const = 0;
    virtual std::vector<DeviceMemory> memory() const { return {}; }
    virtual TandemReport tandem() const { return {}; }
    // Of the present child, null where it does not take clients' sockets. Ask after socket(): the child of a socket
    // that is connected to is this one, or gone.
    virtual std::shared_ptr<StreamTable> streams() const { return nullptr; }
    virtual Result<void> wait_ready(std::chrono::milliseconds limit) const = 0;
    virtual void request_begun() = 0;
    virtual void request_ended() = 0;
    virtual void stop() = 0;
    // stop(), running or to come, kills what is left at that time.
    virtual void limit_stop(std::chrono::steady_clock::time_point) {}
};

}  // namespace onebit
