#include "engine/response_wait.h"

#include <algorithm>
#include <chrono>

#include "server-queue.h"  // llama.cpp, tools/server; a change of the class there is one of this file too

namespace onebit {

void use_bounded_response_wait() {}

}  // namespace onebit

server_task_result_ptr server_response::recv_with_timeout(const std::unordered_set<int>& id_tasks, int timeout) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(timeout);
    std::unique_lock lock(mutex_results);
    for (;;) {
        const auto result = std::find_if(queue_results.begin(), queue_results.end(),
                                         [&](const auto& one) { return id_tasks.count(one->id) > 0; });
        if (result != queue_results.end()) {
            server_task_result_ptr taken = std::move(*result);
            queue_results.erase(result);
            return taken;
        }
        const bool over = condition_results.wait_until(lock, until) == std::cv_status::timeout;
        if (!running) std::terminate();  // as the server's own: its caller has no answer to give any more
        if (over) return nullptr;
    }
}
