#include "server/supervisor/hang_detector.h"

#include <algorithm>
#include <cmath>

#include "server/supervisor/engine_process.h"

namespace onebit {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kTimesLongest = 20;
constexpr int kTimesLeastUnmeasured = 10;
constexpr milliseconds kMostEver = std::chrono::hours(24);  // a wrong measurement must not switch detection off

milliseconds limit_from(seconds least, double longest_ms) {
    const double scaled = kTimesLongest * longest_ms;
    const double bounded = std::min(scaled, static_cast<double>(kMostEver.count()));
    return std::max(milliseconds(least), milliseconds(static_cast<int64_t>(std::ceil(bounded))));
}

}  // namespace

ProgressSigns signs_of(const HeartbeatPage& page) {
    ProgressSigns signs;
    signs.graphs_begun = page.graphs_begun.load(std::memory_order_relaxed);
    signs.graphs_done = page.graphs_done.load(std::memory_order_relaxed);
    signs.graph_steps = page.graph_steps.load(std::memory_order_relaxed);
    signs.pipelines = page.pipelines.load(std::memory_order_relaxed);
    signs.load_steps = page.load_steps.load(std::memory_order_relaxed);
    return signs;
}

milliseconds StallClock::observe(const ProgressSigns& signs, Time now) {
    if (first_ || signs != last_) {
        stalled_ = milliseconds(0);
    } else {
        stalled_ += std::min(gap_, std::chrono::duration_cast<milliseconds>(now - last_time_));
    }
    first_ = false;
    last_ = signs;
    last_time_ = now;
    return stalled_;
}

milliseconds hang_timeout(seconds least, uint64_t longest_graph_us) {
    return limit_from(least, static_cast<double>(longest_graph_us) / 1000.0);
}

milliseconds present_limit(seconds least, const HeartbeatPage& page) {
    const uint64_t longest = page.longest_graph_us.load(std::memory_order_relaxed);
    const uint64_t work = page.longest_graph_work.load(std::memory_order_relaxed);
    const uint64_t open = page.open_work.load(std::memory_order_relaxed);
    const bool in_graph =
        page.graphs_begun.load(std::memory_order_relaxed) != page.graphs_done.load(std::memory_order_relaxed);
    const bool compiled =
        page.pipelines.load(std::memory_order_relaxed) != page.pipelines_at_done.load(std::memory_order_relaxed);
    double expected = static_cast<double>(longest) / 1000.0;
    if (in_graph && work > 0 && open > work) expected *= static_cast<double>(open) / static_cast<double>(work);
    const bool unmeasured = in_graph && (longest == 0 || compiled);
    return limit_from(unmeasured ? least * kTimesLeastUnmeasured : least, expected);
}

milliseconds RestartBackOff::next(milliseconds served) {
    constexpr milliseconds kFirst{250}, kMost{30000};
    if (served >= seconds(60) || delay_ == milliseconds(0)) {
        delay_ = kFirst;
    } else {
        delay_ = std::min(delay_ * 2, kMost);
    }
    return delay_;
}

}  // namespace onebit
