// One engine: a child process that runs llama.cpp's server on a Unix socket in a folder of mode 0700.
// The supervisor alone starts, watches, restarts and stops it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/supervisor/member_failure.h"
#include "server/supervisor/placement.h"
#include "server/supervisor/stream_table.h"
#include "server/supervisor/tandem_table.h"

namespace onebit {

enum class EngineState { starting, ready, stopping, stopped, failed };
const char* to_string(EngineState state);

struct EngineOptions {
    std::filesystem::path program;            // this binary
    std::vector<std::string> arguments;       // of llama.cpp's server, without --host and --port
    std::filesystem::path runtime_folder;     // mode 0700, of this supervisor
    std::string label;                        // the model's id, for the log
    std::chrono::seconds start_timeout{600};  // without any sign of progress
    std::chrono::seconds hang_timeout{30};  // least time without progress; the real one scales with the measured graph
    std::chrono::seconds stop_timeout{10};  // from SIGTERM to SIGKILL
    bool restart = true;                    // after a crash or a hang, with back-off
    // Members that its tandem does without. One in which the process crashes or hangs joins them for the next start,
    // unless strict.
    std::vector<ExcludedMember> excluded;
    bool strict = false;
};

struct EngineStatus {
    EngineState state = EngineState::stopped;
    int64_t pid = 0;
    double load_progress = 0;  // 0 to 1
    uint64_t load_steps = 0;   // reports of progress while loading
    uint64_t graphs = 0, pipelines = 0;
    uint64_t restarts = 0, hangs = 0;
    uint64_t resident_bytes = 0;  // RSS, measured
    uint64_t cpu_milliseconds = 0;
    std::string failed_member;             // of a tandem, in which the last child ended; empty if in none
    std::vector<ExcludedMember> excluded;  // from the present child
    std::map<std::pair<std::string, std::string>, uint64_t> member_failures;  // by member, and "crash" or "hang"
    std::string last_failure;  // signal or exit code, memory, what it was doing; empty if none
    std::string last_output;   // the last lines of the child that ended so, with paths of this machine: not for clients
    // Both, for who runs the server.
    std::string whole_failure() const {
        return last_output.empty() ? last_failure : last_failure + ":\n" + last_output;
    }
    std::chrono::milliseconds retry_after{0};  // until the next start, while it waits
    bool stalled = false;                      // ready, but half the time is over after which it counts as hung
    bool ended_by_others = false;  // the last child got a signal that was not ours, the OOM killer's included
};

// Thread rules: every member function may be called from any thread.
class EngineProcess {
public:
    // Starts the child and a thread that watches it, and returns at once. Error io when it cannot be started at all.
    static Result<std::unique_ptr<EngineProcess>> start(EngineOptions options);
    ~EngineProcess();  // stop()

    EngineStatus status() const;
    std::filesystem::path socket() const;  // of the present child; each start has a new one
    uint64_t generation() const;           // grows by one with each start of the child
    // Where the present child's memory lies, as it counts it; empty before its model is loaded.
    std::vector<DeviceMemory> memory() const;
    // What the present child's tandem did; without a name when it has none.
    TandemReport tandem() const;
    // In the memory that the present child shares; null where it does not take clients' sockets.
    std::shared_ptr<StreamTable> streams() const;

    // Waits until ready; error usage when llama.cpp does not take its arguments, unavailable with whole_failure() when
    // it failed otherwise, timeout.
    Result<void> wait_ready(std::chrono::milliseconds limit) const;

    // Requests in flight: a hang is a graph, or a request, without any progress for the time limit.
    void request_begun();
    void request_ended();

    // SIGTERM, after stop_timeout SIGKILL; returns when the child is gone and its memory is returned.
    void stop();
    // A stop(), running or to come, sends SIGKILL at that time if stop_timeout is not over before. The earliest counts.
    void limit_stop(std::chrono::steady_clock::time_point kill_at);

    // The time without progress after which this engine counts as hung, from what was measured.
    std::chrono::milliseconds present_hang_timeout() const;

private:
    struct Impl;
    explicit EngineProcess(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// The time limit as a pure function: max(least, 20 x the longest measured graph).
std::chrono::milliseconds hang_timeout(std::chrono::seconds least, uint64_t longest_graph_us);

}  // namespace onebit
