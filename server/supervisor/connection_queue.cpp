#include "server/supervisor/connection_queue.h"

#include <chrono>
#include <system_error>
#include <thread>

#include "base/log.h"

namespace onebit {
namespace {

constexpr auto kKeepThread = std::chrono::seconds(5);  // one that has nothing to do
constexpr size_t kAlwaysKept = 4;

}  // namespace

ConnectionQueue::ConnectionQueue(size_t max_threads) : max_threads_(max_threads) {}

bool ConnectionQueue::enqueue(std::function<void()> job) {
    std::lock_guard lock(state_->mutex);
    if (state_->stopping) return false;
    state_->jobs.push_back(std::move(job));
    if (state_->jobs.size() > state_->idle && state_->threads < max_threads_) {
        try {
            std::thread(work, state_).detach();
            state_->threads++;
        } catch (const std::system_error& error) {
            log_warning("server", std::string("no thread for a connection, it waits: ") + error.what());
        }
    }
    state_->changed.notify_one();
    return true;
}

void ConnectionQueue::work(std::shared_ptr<State> state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
        state->idle++;
        bool woken =
            state->changed.wait_for(lock, kKeepThread, [&] { return !state->jobs.empty() || state->stopping; });
        state->idle--;
        if (state->jobs.empty()) {
            if (state->stopping || (!woken && state->threads > kAlwaysKept)) break;
            continue;
        }
        std::function<void()> job = std::move(state->jobs.front());
        state->jobs.pop_front();
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
    }
    state->threads--;
    state->changed.notify_all();
}

void ConnectionQueue::shutdown() {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] { return state_->threads == 0; });
}

}  // namespace onebit
