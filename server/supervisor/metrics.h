// Counters of the supervisor in Prometheus' text format, and the engines' own metrics with the model's name.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/supervisor/fleet.h"

namespace onebit {

// What is known of one request when it is over.
struct RequestRecord {
    std::string model;  // empty: answered by the supervisor
    int status = 0;     // 499: the client left first
    uint64_t bytes_in = 0, bytes_out = 0;
    double seconds = 0;
    double first_byte_seconds = -1;  // negative: none was sent, or none from an engine
    uint64_t direct_bytes = 0;       // of bytes_out: those that the engine wrote to the client itself
};

// Safe from any thread.
class Metrics {
public:
    void begun() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
    void done(const RequestRecord& record);
    uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

    // The whole document. engine_texts: model and what its own /metrics answered.
    std::string render(const std::vector<EngineView>& engines,
                       const std::vector<std::pair<std::string, std::string>>& engine_texts) const;

    static constexpr std::array<double, 12> kBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60};

private:
    struct Times {
        std::array<uint64_t, kBuckets.size() + 1> counts{};
        double sum = 0;
        uint64_t count = 0;
    };
    struct Sums {
        uint64_t bytes_in = 0, bytes_out = 0, direct_bytes = 0;
        double seconds = 0;
        Times first_byte;
    };

    std::atomic<uint64_t> in_flight_{0};
    mutable std::mutex mutex_;
    std::map<std::pair<std::string, int>, uint64_t> requests_;  // by model and status
    std::map<std::string, Sums> sums_;                          // by model
};

// A label's value as the text format wants it: backslash, quote and line feed escaped, other control characters gone.
std::string metric_label(std::string_view value);

// One document of several: HELP and TYPE once per family, all samples of a family together, model="..." added to each.
// Lines that are no samples are dropped.
std::string merge_engine_metrics(const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace onebit
