// Threads for connections: one each, kept for a while for the next. Unlike cpp-httplib's own pool it never lets a new
// connection wait behind idle ones while another thread may be started.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include <cpp-httplib/httplib.h>

namespace onebit {

class ConnectionQueue final : public httplib::TaskQueue {
public:
    explicit ConnectionQueue(size_t max_threads);
    ~ConnectionQueue() override { shutdown(); }

    // Takes the job in any case but after shutdown(): without a free thread it waits for one.
    bool enqueue(std::function<void()> job) override;
    // Runs what is queued, then returns when all threads have ended.
    void shutdown() override;

private:
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::function<void()>> jobs;
        size_t threads = 0, idle = 0;
        bool stopping = false;
    };
    static void work(std::shared_ptr<State> state);

    size_t max_threads_;
    std::shared_ptr<State> state_ = std::make_shared<State>();  // outlives the last thread's last step
};

}  // namespace onebit
