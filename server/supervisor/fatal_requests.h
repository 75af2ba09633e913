// Remembers which requests were in flight when their engine ended, so that one which ends engines is not sent to the
// next one again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace onebit {

// Keeps hashes of the last kMost requests, for kKept each. Thread-safe; outlives its flights.
class FatalRequests {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr size_t kMost = 64;
    static constexpr std::chrono::minutes kKept{5};

    explicit FatalRequests(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

    struct Key {
        uint64_t path = 0, body = 0, size = 0;
        bool operator==(const Key&) const = default;
        bool operator<(const Key& other) const {
            return std::tie(path, body, size) < std::tie(other.path, other.body, other.size);
        }
    };
    static Key key_of(std::string_view path, std::string_view body);

    // How many engines it has ended, if it is not to be tried again now. That is so after it was the only request of an
    // engine that ended by itself or hung, and after it was in flight twice in a row, whatever ended the engine.
    std::optional<unsigned> refused(const Key& key);

    // Held by a suspect that runs.
    class Turn {
    public:
        Turn() = default;
        Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
        Turn& operator=(Turn&& other) noexcept {
            std::swap(owner_, other.owner_);
            return *this;
        }
        ~Turn();

    private:
        friend class FatalRequests;
        FatalRequests* owner_ = nullptr;
    };
    // Of the requests that were in flight when an engine ended one runs at a time, until each has been answered: if an
    // engine ends again, only that one is blamed. Waits for its turn; a request that is no suspect has one at once.
    // Unset: the limit is over, or give_up, which is asked while waiting, said so.
    std::optional<Turn> wait_for_turn(
        const Key& key, std::chrono::milliseconds limit, const std::function<bool()>& give_up = [] { return false; });

    // One request while an engine has it. Used by one thread.
    class Flight {
    public:
        Flight(FatalRequests& owner, const Key& key, std::string engine, Turn turn);
        ~Flight();
        Flight(const Flight&) = delete;
        Flight& operator=(const Flight&) = delete;

        // Its engine ended. by_others: killed from outside, or a member of a tandem did it. True: refused from now on.
        bool engine_ended(bool by_others);
        // Its engine answered it to the end, so it ends none.
        void answered();

    private:
        FatalRequests& owner_;
        const Key key_;
        const std::string engine_;
        const Turn turn_;
    };
    // engine: what no two starts of an engine have in common, such as its socket.
    std::unique_ptr<Flight> begin(const Key& key, std::string engine, Turn turn) {
        return std::make_unique<Flight>(*this, key, std::move(engine), std::move(turn));
    }
    std::unique_ptr<Flight> begin(const Key& key, std::string engine) { return begin(key, std::move(engine), Turn()); }

private:
    struct Suspect {
        Key key;
        unsigned ended = 0;
        std::string last_engine;
        bool refused = false;
        Clock::time_point at;
    };
    struct Engine {
        std::map<Key, unsigned> flights;
        std::optional<bool> alone;  // when it ended: all its flights were one request
    };

    void forget_old();
    Suspect& suspect(const Key& key);

    std::function<Clock::time_point()> now_;
    std::mutex mutex_;
    std::condition_variable turn_over_;
    bool turn_taken_ = false;
    std::list<Suspect> suspects_;  // the last one that ended an engine first
    std::map<std::string, Engine> engines_;
};

}  // namespace onebit
