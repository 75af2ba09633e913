#include "engine/response_wait.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "server-queue.h"  // llama.cpp, tools/server; a change of the class there is one of this file too

namespace onebit {
namespace {

struct Waiter {
    const server_response* queue = nullptr;
    const std::unordered_set<int>* id_tasks = nullptr;
    std::condition_variable wake;  // with the queue's mutex
};

std::mutex waiters_mutex;
std::vector<std::shared_ptr<Waiter>> waiters;

// A thread waits for one thing at a time. Shared, as who wakes it holds no mutex that it would have to wait for.
std::shared_ptr<Waiter> own_waiter() {
    thread_local const auto waiter = std::make_shared<Waiter>();
    return waiter;
}

class Registered {
public:
    Registered(const server_response* queue, const std::unordered_set<int>* id_tasks) : waiter_(own_waiter()) {
        const std::lock_guard lock(waiters_mutex);
        waiter_->queue = queue;
        waiter_->id_tasks = id_tasks;
        waiters.push_back(waiter_);
    }
    ~Registered() {
        const std::lock_guard lock(waiters_mutex);
        std::erase(waiters, waiter_);
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;
    std::condition_variable& wake() { return waiter_->wake; }

private:
    const std::shared_ptr<Waiter> waiter_;
};

}  // namespace

void use_response_wait() {}

void wake_for_result(const server_response* queue, int id_task) {
    std::shared_ptr<Waiter> found;
    {
        const std::lock_guard lock(waiters_mutex);
        for (const auto& waiter : waiters)
            if (waiter->queue == queue && waiter->id_tasks->count(id_task) > 0) found = waiter;
    }
    if (found) found->wake.notify_one();
}

}  // namespace onebit

server_task_result_ptr server_response::recv_with_timeout(const std::unordered_set<int>& id_tasks, int timeout) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(timeout);
    std::unique_lock lock(mutex_results);
    // before the look into the queue and under its mutex: a result that comes after the look finds the waiter
    onebit::Registered registered(this, &id_tasks);
    for (;;) {
        const auto result = std::find_if(queue_results.begin(), queue_results.end(),
                                         [&](const auto& one) { return id_tasks.count(one->id) > 0; });
        if (result != queue_results.end()) {
            server_task_result_ptr taken = std::move(*result);
            queue_results.erase(result);
            return taken;
        }
        const bool over = registered.wake().wait_until(lock, until) == std::cv_status::timeout;
        if (!running) std::terminate();  // as the server's own: its caller has no answer to give any more
        if (over) return nullptr;
    }
}
