#include "server/supervisor/proxy.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "server/supervisor/child_process.h"
#include "server/supervisor/client_fault.h"
#include "server/supervisor/engine_client.h"
#include "server/supervisor/http_server.h"
#include "server/supervisor/known_routes.h"
#include "server/supervisor/responses.h"
#include "server/supervisor/stream_handover.h"

namespace onebit {
namespace {

constexpr uint64_t kWholeBody = 256 << 10;  // smaller responses are read whole before the head is sent
constexpr size_t kMaxErrorBody = 64 << 10;

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    for (std::string_view other : names)
        if (same(name, other)) return true;
    return false;
}

bool hop_by_hop(std::string_view name) {
    return one_of(name, {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
                         "te", "trailer", "transfer-encoding", "upgrade"});
}

bool named_in_connection(const httplib::Request& request, std::string_view name) {
    auto [first, last] = request.headers.equal_range("Connection");
    for (auto at = first; at != last; ++at) {
        std::string_view list = at->second;
        while (!list.empty()) {
            size_t comma = std::min(list.find(','), list.size());
            std::string_view token = list.substr(0, comma);
            while (!token.empty() && token.front() == ' ') token.remove_prefix(1);
            while (!token.empty() && token.back() == ' ') token.remove_suffix(1);
            if (same(token, name)) return true;
            list.remove_prefix(std::min(comma + 1, list.size()));
        }
    }
    return false;
}

bool plain_text(std::string_view value) {
    for (unsigned char c : value)
        if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
    return true;
}

std::string engine_head(const httplib::Request& request, const ProxyRequest& details) {
    std::string head;
    head.reserve(512);
    head.append(request.method).append(" ").append(request.target);
    head.append(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (const auto& [name, value] : request.headers) {
        // the key and the origin are judged here; the engine compresses nothing
        if (hop_by_hop(name) || one_of(name, {"host", "content-length", "content-type", "authorization", "x-api-key",
                                              "origin", "expect", "accept-encoding"}))
            continue;
        if (named_in_connection(request, name) || !plain_text(name) || !plain_text(value)) continue;
        head.append(name).append(": ").append(value).append("\r\n");
    }
    if (!details.content_type.empty() && plain_text(details.content_type))
        head.append("Content-Type: ").append(details.content_type).append("\r\n");
    if (!details.body.empty() || one_of(request.method, {"POST", "PUT", "PATCH"}))
        head.append("Content-Length: ").append(std::to_string(details.body.size())).append("\r\n");
    return head.append("\r\n");
}

void copy_headers(const EngineResponseHead& head, httplib::Response& response) {
    for (const auto& [name, value] : head.headers) {
        bool cors = name.size() > 15 && strncasecmp(name.data(), "access-control-", 15) == 0;
        if (cors || hop_by_hop(name) || one_of(name, {"content-length", "content-type", "server"})) continue;
        response.set_header(name, value);
    }
}

// The stream of one request; lives in the response's content provider.
class ProxyStream {
public:
    ProxyStream(Fleet::Lease lease, std::shared_ptr<RequestScope> scope, std::string path, const ProxyRequest& details,
                std::unique_ptr<FatalRequests::Flight> flight, const ProxyTimes& times,
                std::shared_ptr<StreamTable> streams)
        : exchange(details.client, details.end),
          handover_(std::move(streams), details.client),
          lease_(std::move(lease)),
          scope_(std::move(scope)),
          path_(std::move(path)),
          flight_(std::move(flight)),
          times_(times),
          wait_(times.ping),
          generation_(lease_.engine().generation()) {}

    ~ProxyStream() {
        const StreamHandover::Direct direct = handover_.direct();
        if (direct.chunks > 0) scope_->first_byte(direct.first);
        scope_->record.bytes_out += direct.payload;
        scope_->record.direct_bytes = direct.payload;
        exchange.close();  // before the lease: an engine that is let go has no request left
    }

    EngineExchange exchange;

    RequestScope& scope() { return *scope_; }
    Fleet::Lease& lease() { return lease_; }
    // The engine's response is whole.
    void answered() {
        if (flight_) flight_->answered();
    }
    void set_events(bool events, bool head_pending) { events_ = events, head_pending_ = head_pending; }
    // The engine's response with that head may go from it to the client directly.
    void allow_direct(const EngineResponseHead& head) { direct_ = events_ && head.status == 200 && head.chunked; }

    struct Failure {
        std::string message;
        const char* code;  // empty: the status
        std::chrono::milliseconds retry_after{0};
        bool repeat = true;  // it may help to send the request again
        std::string body() const { return error_body(503, "engine_failed", message, code); }
    };

    // Why the engine is gone. Its watcher may learn it a moment after us.
    Failure failure() {
        EngineStatus status;
        bool known = false;
        for (int i = 0; i < 400 && !known; i++) {
            // after a second only a process that is gone is worth waiting for
            if (i == 40 && sample_child(static_cast<pid_t>(status.pid)).valid) break;
            if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(25));
            status = lease_.engine().status();
            known = status.state != EngineState::ready || lease_.engine().generation() != generation_;
        }
        Failure why;
        const bool member = known && !status.failed_member.empty();
        why.code = member ? "member_failed" : "";
        why.retry_after = status.retry_after;
        // who stops an engine has a reason that lies in no request
        const bool ended_itself = status.state != EngineState::stopping && status.state != EngineState::stopped;
        if (flight_ && known && ended_itself) why.repeat = !flight_->engine_ended(member || status.ended_by_others);
        why.message = "the engine of model '" + lease_.model() + "' ended during the request" +
                      (status.last_failure.empty() ? "" : ": " + status.last_failure) +
                      (why.repeat ? "; the request may be repeated"
                                  : "; the same request is refused for some minutes, because it may be what ends it");
        return why;
    }

    void answer_failure(httplib::Response& response, EngineIo result) {
        if (result == EngineIo::client_gone) {
            scope_->record.status = 499;
            answer_error(response, 499, "client_closed_request", "the client left");
            return;
        }
        if (result == EngineIo::stopping) {
            scope_->record.status = 503;
            return answer_stopping(response);
        }
        bool garbled = result == EngineIo::malformed;
        scope_->record.status = garbled ? 502 : 503;
        if (garbled)
            return answer_error(response, 502, "engine_failed",
                                "the engine of model '" + lease_.model() + "' gave an answer that is not HTTP");
        const Failure why = failure();
        if (why.repeat)
            response.set_header(
                "Retry-After",
                std::to_string(std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(why.retry_after).count())));
        answer_error(response, 503, "engine_failed", why.message, why.code);
    }

    // One step of a streamed body: one read, one write.
    bool pump(httplib::DataSink& sink) {
        if (head_pending_) return pump_head(sink);
        if (direct_) handover_.offer(exchange);
        size_t count = 0;
        EngineIo result =
            exchange.read_body(buffer_, count, events_ ? EngineExchange::Wait(wait_) : EngineExchange::Wait());
        switch (result) {
            case EngineIo::ok:
                scope_->first_byte();
                remember_end(count);
                wait_ = times_.ping;
                return write(sink, {buffer_.data(), count}, true);
            case EngineIo::end:
                answered();
                if (sink.done) sink.done();
                return true;
            case EngineIo::timeout:
                return ping(sink);
            case EngineIo::client_gone:
                scope_->record.status = 499;
                return false;
            case EngineIo::engine_gone:
            case EngineIo::malformed:
            case EngineIo::stopping:
                break;
        }
        if (!events_) return false;
        if (handover_.direct().failed) {  // the engine met the client's end before us
            scope_->record.status = 499;
            return false;
        }
        std::string words = last_words(result);
        if (!handover_.take_over(result == EngineIo::engine_gone)) {
            if (scope_->record.status < 400) scope_->record.status = 503;
            return false;
        }
        return end_with_error(sink, std::move(words));
    }

private:
    std::string last_words(EngineIo result) {
        return result == EngineIo::stopping ? error_body(503, error_type(503), kStopping) : failure().body();
    }

    // A word for a client that has waited.
    bool ping(httplib::DataSink& sink) {
        wait_ = times_.ping;
        if (const StreamHandover::Direct direct = handover_.direct(); direct.chunks > 0) {
            const auto silent = std::chrono::floor<std::chrono::milliseconds>(Clock::now() - direct.last);
            if (silent < times_.ping) {
                wait_ = times_.ping - silent;
                return true;
            }
        }
        if (!handover_.begin_words()) return true;
        const bool written = !at_event_end() || write(sink, ": waiting\n\n");
        handover_.end_words();
        return written;
    }

    bool pump_head(httplib::DataSink& sink) {
        EngineResponseHead head;
        EngineIo result = exchange.read_head(head, times_.ping);
        if (result == EngineIo::timeout) return write(sink, ": waiting\n\n");
        if (result == EngineIo::client_gone) {
            scope_->record.status = 499;
            return false;
        }
        if (result != EngineIo::ok) return end_with_error(sink, last_words(result));
        head_pending_ = false;
        bool events = head.header("content-type").starts_with("text/event-stream");
        if (head.status == 200 && events) {
            allow_direct(head);
            return true;
        }
        // the status that this should have been can only be told in the stream now
        std::string body;
        size_t count = 0;
        while (body.size() < kMaxErrorBody && exchange.read_body(buffer_, count) == EngineIo::ok)
            body.append(buffer_.data(), count);
        for (char& c : body)
            if (c == '\n' || c == '\r') c = ' ';
        if (head.status == 200) {
            scope_->first_byte();
            if (!write(sink, "data: " + body + "\n\n")) return false;
            sink.done();
            return true;
        }
        if (auto fault = head.status == 500 ? client_fault(path_, body) : std::nullopt) {
            head.status = 400;
            body = std::move(*fault);
        }
        if (head.status == 501 || head.status == 400) say_our_option(body);
        scope_->record.status = head.status;
        if (body.empty() || body.front() != '{')
            body = error_body(head.status, error_type(head.status),
                              "the engine answered with status " + std::to_string(head.status));
        return end_with_error(sink, body);
    }

    bool end_with_error(httplib::DataSink& sink, std::string body) {
        put_in_form(path_, body);
        if (scope_->record.status < 400) scope_->record.status = 503;
        std::string event = at_event_end() ? "" : "\n\n";
        // the dialects that name their events
        if (path_.find("/messages") != std::string::npos || path_.find("/responses") != std::string::npos)
            event += "event: error\n";
        event += "data: " + body + "\n\n";
        if (!write(sink, event)) return false;
        if (sink.done) sink.done();
        return true;
    }

    // engine: bytes of the engine's answer, not words of ours.
    bool write(httplib::DataSink& sink, std::string_view bytes, bool engine = false) {
        if (!sink.write(bytes.data(), bytes.size())) {
            scope_->record.status = 499;
            return false;
        }
        scope_->record.bytes_out += bytes.size();
        handover_.wrote(bytes.size(), engine);
        return true;
    }

    void remember_end(size_t count) {
        if (count >= 2)
            last_ = {buffer_[count - 2], buffer_[count - 1]};
        else
            last_ = {last_[1], buffer_[0]};
    }
    bool at_event_end() const {
        const StreamHandover::Direct direct = handover_.direct();
        return direct.chunks > 0 ? direct.at_event_end : last_[0] == '\n' && last_[1] == '\n';
    }

    using Clock = StreamHandover::Clock;
    StreamHandover handover_;
    Fleet::Lease lease_;
    std::shared_ptr<RequestScope> scope_;
    std::string path_;
    std::unique_ptr<FatalRequests::Flight> flight_;
    ProxyTimes times_;
    std::chrono::milliseconds wait_;  // for the next event, until a ping
    uint64_t generation_;
    bool events_ = false, head_pending_ = false, direct_ = false;
    std::array<char, 2> last_ = {'\n', '\n'};
    std::array<char, 16384> buffer_;
};

// Knows chunks; a client of HTTP/1.0 does not, and has the end of the connection for the end of the body.
bool knows_chunks(const httplib::Request& request) { return request.version == "HTTP/1.1"; }

void stream_body(const httplib::Request& request, const std::shared_ptr<ProxyStream>& stream,
                 httplib::Response& response, const std::string& type) {
    const auto pump = [stream](size_t, httplib::DataSink& sink) { return stream->pump(sink); };
    if (knows_chunks(request)) return response.set_chunked_content_provider(type, pump);
    if (ClientStream* client = HttpServer::current()) client->set_last();
    response.set_content_provider(type, pump);
}

}  // namespace

void proxy_request(const httplib::Request& request, httplib::Response& response, Fleet::Lease lease,
                   ProxyRequest details, const std::shared_ptr<RequestScope>& scope, const ProxyTimes& times) {
    scope->record.model = lease.model();
    std::filesystem::path socket = lease.engine().socket();
    std::shared_ptr<StreamTable> streams = knows_chunks(request) ? lease.engine().streams() : nullptr;
    const std::string path = request.target.substr(0, request.target.find('?'));
    auto stream = std::make_shared<ProxyStream>(std::move(lease), scope, path, details, std::move(details.flight),
                                                times, std::move(streams));
    std::string head_text = engine_head(request, details);
    EngineIo result = stream->exchange.send(socket, head_text, details.body);
    if (result != EngineIo::ok) return stream->answer_failure(response, result);
    std::string().swap(details.body);

    EngineResponseHead head;
    result = stream->exchange.read_head(
        head, details.stream ? EngineExchange::Wait(times.early_head) : EngineExchange::Wait());
    if (result == EngineIo::timeout) {
        response.status = scope->record.status = 200;
        response.set_header("Cache-Control", "no-cache");
        response.set_header("X-Accel-Buffering", "no");
        stream->set_events(true, true);
        return stream_body(request, stream, response, "text/event-stream");
    }
    if (result != EngineIo::ok) return stream->answer_failure(response, result);

    std::string type(head.header("content-type"));
    scope->record.status = head.status;
    if (request.method == "HEAD" || head.status == 204 || head.status == 304) {
        stream->exchange.no_body();
        response.status = head.status;
        copy_headers(head, response);
        if (head.length) response.set_header("Content-Length", std::to_string(*head.length));
        if (!type.empty()) response.set_header("Content-Type", type);
        scope->first_byte();
        return;
    }
    if (head.length && *head.length <= kWholeBody) {
        std::string body(*head.length, '\0');
        size_t done = 0, count = 0;
        while (done < body.size()) {
            result = stream->exchange.read_body(std::span<char>(body).subspan(done), count);
            if (result != EngineIo::ok) break;
            scope->first_byte();
            done += count;
        }
        if (done < body.size()) return stream->answer_failure(response, result);
        stream->answered();
        if (auto fault = head.status == 500 ? client_fault(path, body) : std::nullopt) {
            head.status = 400;
            body = std::move(*fault);
        }
        if (head.status == 501 || head.status == 400) say_our_option(body);
        if (head.status == 404 && methods_of(path).empty()) body = no_route_body(path);
        response.status = scope->record.status = head.status;
        copy_headers(head, response);
        scope->first_byte();
        scope->record.bytes_out += body.size();
        if (!type.empty()) response.set_header("Content-Type", type);
        response.body = std::move(body);
        return;
    }
    response.status = head.status;
    copy_headers(head, response);
    stream->set_events(type.starts_with("text/event-stream"), false);
    stream->allow_direct(head);
    if (head.length) {
        response.set_content_provider(*head.length, type.empty() ? "application/octet-stream" : type,
                                      [stream](size_t, size_t, httplib::DataSink& sink) { return stream->pump(sink); });
        return;
    }
    stream_body(request, stream, response, type.empty() ? "application/octet-stream" : type);
}

}  // namespace onebit
