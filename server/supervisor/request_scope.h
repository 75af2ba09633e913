// One request from its head to the end of its response: what the metrics and the access log learn of it.
#pragma once

#include <chrono>
#include <string>

#include "server/supervisor/metrics.h"

namespace onebit {

// Shared by the handler and the stream that outlives it; used by one thread. Its end is the request's end.
class RequestScope {
public:
    RequestScope(Metrics& metrics, std::string method, std::string path, std::string client)
        : metrics_(metrics), method_(std::move(method)), path_(std::move(path)), client_(std::move(client)) {
        metrics_.begun();
    }
    ~RequestScope();
    RequestScope(const RequestScope&) = delete;
    RequestScope& operator=(const RequestScope&) = delete;

    using Clock = std::chrono::steady_clock;
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    void first_byte(Clock::time_point when = Clock::now()) {
        if (record.first_byte_seconds < 0)
            record.first_byte_seconds = std::chrono::duration<double>(when - start_).count();
    }

    RequestRecord record;

private:
    Metrics& metrics_;
    std::string method_, path_, client_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace onebit
