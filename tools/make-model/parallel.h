// Work spread over threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace onebit {

// Calls work(worker, task) once for each task below `tasks`, in no order; worker is below `threads`, and no two calls
// of one worker run at a time. Returns when all are done. work must not throw.
template <typename Work>
void in_parallel(unsigned threads, size_t tasks, const Work& work) {
    std::atomic<size_t> next{0};
    const auto run = [&](unsigned worker) {
        for (size_t task = next++; task < tasks; task = next++) work(worker, task);
    };
    std::vector<std::jthread> others;
    for (unsigned worker = 1; worker < threads && worker < tasks; worker++) others.emplace_back(run, worker);
    run(0);
}

}  // namespace onebit
