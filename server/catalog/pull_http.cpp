#include "server/catalog/pull_http.h"

#include <time.h>

#include <cpp-httplib/httplib.h>
#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

namespace onebit {
namespace {

constexpr int kMostRedirects = 10;
constexpr std::chrono::milliseconds kCancelPeriod{50};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string unquoted_etag(std::string text) {
    if (text.starts_with("W/")) text.erase(0, 2);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    return text;
}

// Shuts the socket down once the caller gave up, so that a read that waits for bytes ends.
class CancelWatch {
public:
    CancelWatch(httplib::Client& client, const std::atomic<bool>* cancel) {
        if (!cancel) return;
        thread_ = std::thread([this, &client, cancel] {
            std::unique_lock lock(mutex_);
            while (!done_) {
                // again and again: a stop before the connection stands has no effect
                if (cancel->load()) client.stop();
                wake_.wait_for(lock, kCancelPeriod);
            }
        });
    }
    ~CancelWatch() {
        if (!thread_.joinable()) return;
        {
            std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    CancelWatch(const CancelWatch&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

void use_proxy(httplib::Client& client, const HttpUrl& url) {
    std::string proxy = environment(url.scheme == "https" ? "https_proxy" : "http_proxy");
    if (proxy.empty() && url.scheme == "https") proxy = environment("HTTPS_PROXY");
    if (proxy.empty()) return;
    if (proxy.find("://") == std::string::npos) proxy.insert(0, "http://");
    const size_t at = proxy.rfind('@');
    std::string login;
    if (at != std::string::npos) {
        const size_t start = proxy.find("://") + 3;
        login = proxy.substr(start, at - start);
        proxy.erase(start, at + 1 - start);
    }
    const Result<HttpUrl> address = parse_url(proxy, "proxy of the environment");
    if (!address) return;
    client.set_proxy(address->host, address->port);
    if (!login.empty()) {
        const size_t colon = login.find(':');
        client.set_proxy_basic_auth(
            httplib::decode_uri_component(login.substr(0, colon)),
            colon == std::string::npos ? "" : httplib::decode_uri_component(login.substr(colon + 1)));
    }
    std::string list = environment("no_proxy");
    if (list.empty()) list = environment("NO_PROXY");
    list += ",localhost,127.0.0.1,::1";
    std::vector<std::string> patterns;
    for (size_t start = 0; start <= list.size();) {
        const size_t comma = std::min(list.find(',', start), list.size());
        patterns.push_back(list.substr(start, comma - start));
        start = comma + 1;
    }
    client.set_no_proxy(patterns);
}

HttpFailure transport_failure(httplib::Error error, const HttpUrl& url) {
    const std::string subject = url.text();
    const std::string peer = url.host + ":" + std::to_string(url.port);
    switch (error) {
        case httplib::Error::ConnectionTimeout:
        case httplib::Error::Timeout:
            return {{ErrorCode::timeout, subject, "a connection to " + peer, "no answer",
                     "check the network, then try again"},
                    true,
                    {}};
        case httplib::Error::Connection:
        case httplib::Error::ProxyConnection:
            return {{ErrorCode::unavailable, subject, "a connection to " + peer,
                     "it is refused, or the name is not known", "check the network and the address of the hub"},
                    true,
                    {}};
        case httplib::Error::SSLServerVerification:
        case httplib::Error::SSLServerHostnameVerification:
        case httplib::Error::SSLLoadingCerts:
            return {{ErrorCode::unavailable, subject, "a certificate that this machine trusts",
                     httplib::to_string(error), "check the clock and the package ca-certificates"},
                    false,
                    {}};
        case httplib::Error::SSLConnection:
            return {{ErrorCode::unavailable, subject, "a TLS connection to " + peer, "the handshake failed",
                     "try again later"},
                    true,
                    {}};
        default:
            return {{ErrorCode::unavailable, subject, "a whole answer",
                     "the connection broke (" + httplib::to_string(error) + ")", "try again: what is here is kept"},
                    true,
                    {}};
    }
}

std::optional<std::chrono::seconds> retry_after(const HttpHead& head) {
    const std::string text = head.header("retry-after");
    if (text.empty()) return std::nullopt;
    uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error == std::errc() && end == text.data() + text.size()) return std::chrono::seconds(seconds);
    struct tm when {};
    if (!strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S", &when)) return std::nullopt;
    return std::chrono::seconds(std::max<int64_t>(0, static_cast<int64_t>(timegm(&when)) - time(nullptr)));
}

struct Hop {
    HttpHead head;
    std::optional<HttpFailure> failure;
    std::string location;
};

Hop one_hop(const HttpRequest& request, const HttpUrl& url, const HttpSink& sink, const PullTiming& timing,
            const std::atomic<bool>* cancel) {
    Hop hop;
    hop.head.url = url;
#ifndef CPPHTTPLIB_SSL_ENABLED
    if (url.scheme == "https") {
        hop.failure = HttpFailure{
            {ErrorCode::unsupported, url.text(), "a build with OpenSSL", "one without", "build again with it"},
            false,
            {}};
        return hop;
    }
#endif
    httplib::Client client(url.origin());
    client.set_path_encode(false);  // the target is encoded already, and signatures in it must stay as they are
    client.set_follow_location(false);
    client.set_decompress(false);
    client.set_connection_timeout(timing.connect_timeout);
    client.set_read_timeout(timing.read_timeout);
    client.set_write_timeout(timing.read_timeout);
    use_proxy(client, url);

    httplib::Headers headers{{"User-Agent", "1bit"}, {"Accept", "*/*"}, {"Accept-Encoding", "identity"}};
    for (const auto& [name, value] : request.headers) headers.emplace(name, value);
    if (!request.token.empty() && url.origin() == request.url.origin())
        headers.emplace("Authorization", "Bearer " + request.token);

    std::exception_ptr thrown;  // of a callback: it must not unwind through the client
    const auto on_head = [&](const httplib::Response& response) {
        try {
            hop.head.status = response.status;
            for (const auto& [name, value] : response.headers) {
                std::string lower = name;
                std::transform(lower.begin(), lower.end(), lower.begin(),
                               [](unsigned char c) { return std::tolower(c); });
                hop.head.headers.emplace(std::move(lower), value);
            }
            hop.head.linked_etag = unquoted_etag(hop.head.header("x-linked-etag"));
            if (cancelled(cancel)) return false;
            if (response.status > 300 && response.status < 400 && response.status != 304) {
                hop.location = hop.head.header("location");
                return false;
            }
            hop.failure = sink.head(hop.head);
            return !hop.failure.has_value();
        } catch (...) {
            thrown = std::current_exception();
            return false;
        }
    };
    const auto on_body = [&](const char* bytes, size_t size) {
        try {
            if (cancelled(cancel)) return false;
            hop.failure = sink.body(std::as_bytes(std::span(bytes, size)));
            return !hop.failure.has_value();
        } catch (...) {
            thrown = std::current_exception();
            return false;
        }
    };
    httplib::Result result;
    {
        CancelWatch watch(client, cancel);
        result = client.Get(url.target, headers, on_head, on_body);
    }
    if (thrown) std::rethrow_exception(thrown);
    if (cancelled(cancel)) {
        hop.failure = HttpFailure{cancelled_error(url.text()), false, {}};
    } else if (!hop.failure && hop.location.empty() && hop.head.status > 300 && hop.head.status < 400) {
        hop.failure =
            HttpFailure{{ErrorCode::invalid, url.text(), "a redirect with a Location", "one without", ""}, false, {}};
    } else if (!hop.failure && hop.location.empty() && !result) {
        hop.failure = transport_failure(result.error(), url);
    }
    return hop;
}

std::optional<HttpFailure> follow(const HttpRequest& request, const HttpSink& sink, const PullTiming& timing,
                                  const std::atomic<bool>* cancel) {
    HttpUrl url = request.url;
    std::string linked_etag;
    const HttpSink inner{[&](const HttpHead& head) {
                             HttpHead whole = head;
                             if (!linked_etag.empty()) whole.linked_etag = linked_etag;
                             return sink.head(whole);
                         },
                         sink.body};
    for (int hops = 0; hops <= kMostRedirects; ++hops) {
        Hop hop = one_hop(request, url, inner, timing, cancel);
        if (hop.failure || hop.location.empty()) return hop.failure;
        if (linked_etag.empty()) linked_etag = hop.head.linked_etag;
        Result<HttpUrl> next = resolve_url(url, hop.location);
        if (!next) {
            Error error = std::move(next).error();
            error.code = ErrorCode::invalid;
            return HttpFailure{std::move(error), false, {}};
        }
        if (url.scheme == "https" && next->scheme != "https")
            return HttpFailure{{ErrorCode::invalid, "redirect from " + url.text(), "https", next->text(),
                                "a hub must not lead from https to http"},
                               false,
                               {}};
        url = *next;
    }
    return HttpFailure{
        {ErrorCode::invalid, request.url.text(), "at most " + std::to_string(kMostRedirects) + " redirects", "more",
         "the hub sends requests in a circle; check its address"},
        false,
        {}};
}

}  // namespace

std::string HttpHead::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
}

std::optional<uint64_t> HttpHead::length() const {
    const std::string text = header("content-length");
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

bool cancelled(const std::atomic<bool>* cancel) { return cancel && cancel->load(); }

Error cancelled_error(const std::string& subject) {
    return {ErrorCode::cancelled, subject, "", "cancelled", "pull again to go on where it stopped"};
}

std::optional<HttpFailure> http_get(const HttpRequest& request, const HttpSink& sink, const PullTiming& timing,
                                    const std::atomic<bool>* cancel) {
    try {
        if (cancelled(cancel)) return HttpFailure{cancelled_error(request.url.text()), false, {}};
        return follow(request, sink, timing, cancel);
    } catch (const std::exception& exception) {
        return HttpFailure{{ErrorCode::internal, request.url.text(), "", exception.what(), ""}, false, {}};
    }
}

HttpFailure failure_of_status(const HttpHead& head, const std::string& subject) {
    const int status = head.status;
    std::string found = "HTTP " + std::to_string(status);
    if (const std::string code = head.header("x-error-code"); !code.empty()) found += " (" + code.substr(0, 80) + ")";
    if (status == 401 || status == 403)
        return {
            {ErrorCode::not_found, subject, "a public one, or the right to read it", found,
             "check the name; if its page asks to accept terms do so, then set HF_TOKEN to a token of your account"},
            false,
            {}};
    if (status == 404 || status == 410)
        return {{ErrorCode::not_found, subject, "a name that the hub knows", found, "check the spelling of ORG/REPO"},
                false,
                {}};
    if (status == 429) {
        const auto wait = retry_after(head);
        const std::string when = wait ? "in " + std::to_string(wait->count()) + " s" : "later";
        return {{ErrorCode::unavailable, subject, "an answer", found + ", too many requests",
                 "try again " + when + ", or set HF_TOKEN"},
                true,
                wait};
    }
    if (status == 408 || status >= 500)
        return {{ErrorCode::unavailable, subject, "an answer", found, "the hub has a fault; try again later"},
                true,
                retry_after(head)};
    return {{ErrorCode::invalid, subject, "HTTP 200", found, "is the address that of a model hub?"}, false, {}};
}

std::optional<HttpFailure> with_retries(const PullTiming& timing, const std::atomic<bool>* cancel,
                                        const std::function<std::optional<HttpFailure>(bool&)>& attempt) {
    std::chrono::milliseconds delay = timing.first_delay;
    for (unsigned tries = 1;; ++tries) {
        bool progressed = false;
        std::optional<HttpFailure> failure = attempt(progressed);
        if (!failure || !failure->retry) return failure;
        if (progressed) {
            tries = 0;
            delay = timing.first_delay;
        } else if (tries >= std::max(1u, timing.attempts)) {
            return failure;
        }
        std::chrono::milliseconds wait = std::min(delay, timing.longest_delay);
        if (failure->wait) {
            if (*failure->wait > timing.longest_delay) return failure;
            wait = *failure->wait;
        }
        const auto end = std::chrono::steady_clock::now() + wait;
        for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now()) {
            if (cancelled(cancel)) return HttpFailure{cancelled_error(failure->error.subject), false, {}};
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - now, kCancelPeriod));
        }
        delay *= 2;
    }
}

}  // namespace onebit
