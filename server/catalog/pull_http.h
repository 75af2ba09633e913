// One GET over HTTP or HTTPS for downloads: follows redirects without taking the token to another host, sorts failures
// into those worth another try and those that are not, and can be cancelled while it waits for bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "server/catalog/pull.h"
#include "server/catalog/pull_url.h"

namespace onebit {

struct HttpHead {
    int status = 0;
    HttpUrl url;                                 // the one that answered, after redirects
    std::map<std::string, std::string> headers;  // names in lower case
    std::string linked_etag;                     // of the first answer that had one, without quotes

    std::string header(const std::string& name) const;
    std::optional<uint64_t> length() const;  // Content-Length
};

struct HttpFailure {
    Error error;
    bool retry = false;                        // the same request may succeed later
    std::optional<std::chrono::seconds> wait;  // the server's Retry-After
};

struct HttpSink {
    // The answer that is no redirect, whatever its status. A failure ends the request and is what http_get returns.
    std::function<std::optional<HttpFailure>(const HttpHead&)> head;
    std::function<std::optional<HttpFailure>(std::span<const std::byte>)> body;
};

struct HttpRequest {
    HttpUrl url;
    std::map<std::string, std::string> headers;
    std::string token;  // sent as Bearer to this origin only
};

// Blocks; the callbacks run on the caller's thread. Nothing: the body came to its end.
std::optional<HttpFailure> http_get(const HttpRequest& request, const HttpSink& sink, const PullTiming& timing,
                                    const std::atomic<bool>* cancel);

// What an answer that is neither 2xx nor 416 means for the thing named subject.
HttpFailure failure_of_status(const HttpHead& head, const std::string& subject);

// Calls attempt until it returns nothing, a failure that is final, or the tries are used up; waits in between.
// attempt sets its argument when it brought enough to start the count anew.
std::optional<HttpFailure> with_retries(const PullTiming& timing, const std::atomic<bool>* cancel,
                                        const std::function<std::optional<HttpFailure>(bool&)>& attempt);

bool cancelled(const std::atomic<bool>* cancel);
Error cancelled_error(const std::string& subject);

}  // namespace onebit
