// When an engine counts as hung. Pure: times and counters come from the caller, so that every rule can be tested.
// Not thread-safe: one watcher uses it.
#pragma once

#include <chrono>
#include <cstdint>

#include "server/supervisor/heartbeat.h"

namespace onebit {

// Everything whose change proves that the engine is alive and works.
struct ProgressSigns {
    uint64_t graphs_begun = 0, graphs_done = 0, graph_steps = 0, pipelines = 0, load_steps = 0;
    uint64_t disk_bytes = 0;  // read from disk by the process: weights that are mapped arrive inside a graph
    uint64_t answers = 0;     // probes that the engine's request loop answered
    bool operator==(const ProgressSigns&) const = default;
};
ProgressSigns signs_of(const HeartbeatPage& page);

// Counts only the time in which somebody watched: a supervisor that was stopped, or a machine that slept, proves
// nothing about the engine.
class StallClock {
public:
    using Time = std::chrono::steady_clock::time_point;
    // gap: the most that one observation may add.
    explicit StallClock(std::chrono::milliseconds gap) : gap_(gap) {}

    // Returns how long the signs have not changed.
    std::chrono::milliseconds observe(const ProgressSigns& signs, Time now);
    std::chrono::milliseconds stalled() const { return stalled_; }
    void reset() { first_ = true; }

private:
    std::chrono::milliseconds gap_, stalled_{0};
    ProgressSigns last_;
    Time last_time_;
    bool first_ = true;
};

// The limit for what the engine does now: 20 x the longest measured graph, scaled up when the open graph is a larger
// one, never less than `least`; ten times `least` while no graph of its kind has been measured, because drivers
// compile on first use without telling.
std::chrono::milliseconds present_limit(std::chrono::seconds least, const HeartbeatPage& page);

// Delays between starts: 250 ms doubling to 30 s; back to 250 ms after 60 s of good service.
class RestartBackOff {
public:
    // served: how long the child that just ended had been ready.
    std::chrono::milliseconds next(std::chrono::milliseconds served);

private:
    std::chrono::milliseconds delay_{0};
};

}  // namespace onebit
