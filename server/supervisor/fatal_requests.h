// Remembers which requests were in flight when their engine ended, so that one which ends engines is not sent to the
// next one again and again.
#pragma once

#include <chrono>
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

    // One request while an engine has it. Used by one thread.
    class Flight {
    public:
        Flight(FatalRequests& owner, const Key& key, std::string engine);
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
    };
    // engine: what no two starts of an engine have in common, such as its socket.
    std::unique_ptr<Flight> begin(const Key& key, std::string engine) {
        return std::make_unique<Flight>(*this, key, std::move(engine));
    }

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
    std::list<Suspect> suspects_;  // the last one that ended an engine first
    std::map<std::string, Engine> engines_;
};

}  // namespace onebit
