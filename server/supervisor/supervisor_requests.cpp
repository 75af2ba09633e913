// A request on its way through the supervisor: its body, its model, its engine.
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/log.h"
#include "server/supervisor/known_routes.h"
#include "server/supervisor/request_body.h"
#include "server/supervisor/request_check.h"
#include "server/supervisor/responses.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/web_page.h"

namespace onebit {
namespace {

constexpr auto kTurnWait = std::chrono::seconds(30);

// Requests that look at an engine or set it up: they neither load a model nor keep it awake.
bool only_looks(const std::string& method, const std::string& path) {
    if (path == "/v1/streams/lookup" || path == "/props" || path == "/lora-adapters" || path.starts_with("/slots"))
        return true;
    return method == "DELETE";
}

// GET routes of the engine; anything else is not found while no engine can be asked.
bool engine_get_path(const std::string& path) {
    static const std::set<std::string> kPaths = {"/props",     "/slots", "/lora-adapters",
                                                 "/v1/stream", "/tools", "/cors-proxy"};
    return kPaths.count(path) > 0;
}

bool starts_with_nocase(std::string_view text, std::string_view prefix) {
    return text.size() >= prefix.size() && strncasecmp(text.data(), prefix.data(), prefix.size()) == 0;
}

// curl -d names JSON a form, so only what is surely something else is passed unread.
bool is_json_body(std::string_view type) {
    for (std::string_view other : {"multipart/", "application/octet-stream", "audio/", "image/", "video/"})
        if (starts_with_nocase(type, other)) return false;
    return true;
}

// The value of a short text field of a multipart body; empty if it is not there.
std::string multipart_field(std::string_view body, std::string_view type, std::string_view name) {
    size_t at = type.find("boundary=");
    if (at == std::string_view::npos) return {};
    std::string_view boundary = type.substr(at + 9);
    boundary = boundary.substr(0, boundary.find(';'));
    if (boundary.size() >= 2 && boundary.front() == '"' && boundary.back() == '"')
        boundary = boundary.substr(1, boundary.size() - 2);
    if (boundary.empty()) return {};
    std::string line = "--" + std::string(boundary), wanted = "name=\"" + std::string(name) + "\"";
    size_t part = body.find(line);
    while (part != std::string_view::npos) {
        part += line.size();
        size_t head_end = body.find("\r\n\r\n", part);
        if (head_end == std::string_view::npos || head_end - part > 4096) return {};
        std::string_view head = body.substr(part, head_end - part);
        size_t next = body.find(line, head_end);
        if (head.find(wanted) != std::string_view::npos && head.find("filename=") == std::string_view::npos) {
            std::string_view value = body.substr(head_end + 4, 1024);
            return std::string(value.substr(0, value.find("\r\n")));
        }
        part = next;
    }
    return {};
}

// A request of the page that this server gave out, not of a program that polls.
bool from_our_page(const httplib::Request& request) {
    if (request.get_header_value("Sec-Fetch-Site") == "same-origin") return true;
    std::string referer = request.get_header_value("Referer");
    size_t start = referer.find("://");
    if (start == std::string::npos) return false;
    std::string authority = referer.substr(start + 3);
    return authority.substr(0, authority.find('/')) == request.get_header_value("Host");
}

}  // namespace

Supervisor::Context& Supervisor::context() {
    thread_local Context context;
    return context;
}

void Supervisor::refuse(httplib::Response& response, const Error& error, std::chrono::milliseconds retry_after) {
    context().scope->record.status = http_status(error.code);
    answer_error(response, error, retry_after);
}

void Supervisor::on_get(const httplib::Request& request, httplib::Response& response) {
    Context& here = context();
    RequestRecord& record = here.scope->record;
    if (serve_web_page(here.path, request, response)) {
        // who opens the page wants to chat: its model may load while the page does
        if (here.path == "/" && !fleet_->fixed() &&
            request.get_header_value("Accept").find("text/html") != std::string::npos && fleet_->engines().empty())
            if (Result<void> loading = fleet_->load(""); !loading.ok())
                log_verbose("server", loading.error().message());
    } else if (!own_get(request, response)) {
        get_from_engine(request, response);
        return;
    }
    record.status = response.status;
    record.bytes_out = response.body.size();
}

void Supervisor::get_from_engine(const httplib::Request& request, httplib::Response& response) {
    Context& here = context();
    std::string model = request.get_param_value("model");
    bool inference = here.path == "/v1/stream" && request.method == "GET";
    Result<Fleet::Lease> lease = fleet_->acquire_loaded(model, inference);
    if (!lease.ok()) {
        if (!engine_get_path(here.path)) {
            here.scope->record.status = 404;
            return answer_no_route(response, here.path);
        }
        Error error = lease.error();
        if (error.code == ErrorCode::unavailable && !fleet_->fixed()) {
            if (from_our_page(request)) {
                if (Result<void> loading = fleet_->load(model); !loading.ok()) error = loading.error();
            } else {
                error.remedy = "this request loads none; send a completion, or POST /onebit/load";
            }
        }
        return refuse(response, error, std::chrono::seconds(1));
    }
    ProxyRequest details;
    details.content_type = here.content_type;
    details.body = request.body;
    if (HttpServer::current()) details.client = HttpServer::current()->socket();
    details.end = http_.end_event();
    proxy_request(request, response, std::move(*lease), std::move(details), here.scope, parts_.times);
}

bool Supervisor::read_body(const httplib::Request& request, httplib::Response& response,
                           const httplib::ContentReader& reader, std::string& body) {
    Context& here = context();
    const uint64_t limit = here.state->config.max_request_bytes;
    auto too_large = [&](const std::string& found) {
        here.scope->record.status = 413;
        answer_error(response, 413, error_type(413),
                     "request body: expected at most " + std::to_string(limit) + " bytes, found " + found +
                         "; --max-request-size or max_request_size raises the limit");
        return false;
    };
    std::string length_text = request.get_header_value("Content-Length");
    if (!length_text.empty()) {
        uint64_t length = 0;
        auto [end, code] = std::from_chars(length_text.data(), length_text.data() + length_text.size(), length);
        if (code == std::errc::result_out_of_range) return too_large(printable(length_text.substr(0, 40)));
        if (code != std::errc() || end != length_text.data() + length_text.size()) {
            here.scope->record.status = 400;
            answer_error(
                response, 400, error_type(400),
                "Content-Length header: expected a number, found '" + printable(length_text.substr(0, 40)) + "'");
            return false;
        }
        if (length > limit) return too_large(std::to_string(length));
        body.reserve(std::min<uint64_t>(length, 1u << 20));
    }
    bool exceeded = false;
    bool whole = reader([&](const char* data, size_t size) {
        if (size > limit - body.size()) {
            exceeded = true;
            return false;
        }
        body.append(data, size);
        return true;
    });
    if (exceeded) return too_large("more than that");
    if (whole) {
        here.scope->record.bytes_in = body.size();
        return true;
    }
    ClientStream* stream = HttpServer::current();
    if (response.status == 415) {
        here.scope->record.status = 415;
        answer_error(response, 415, "invalid_request_error",
                     "Content-Encoding header: compressed bodies are not supported");
        return false;
    }
    if (stream && stream->ended()) {
        here.scope->record.status = 503;
        answer_stopping(response);
        return false;
    }
    int status = stream && stream->timed_out() ? 408 : 400;
    here.scope->record.status = status;
    answer_error(response, status, error_type(status),
                 status == 408 ? "request body: not complete within the read time-out, " + std::to_string(body.size()) +
                                     " bytes came"
                               : "request body: ended after " + std::to_string(body.size()) +
                                     " bytes, which is not what Content-Length or the chunks say");
    return false;
}

void Supervisor::on_body(const httplib::Request& request, httplib::Response& response,
                         const httplib::ContentReader& reader) {
    Context& here = context();
    std::string body;
    if (!read_body(request, response, reader, body)) return;
    if (request.method == "POST" && own_post(request, response, body)) {
        here.scope->record.status = response.status;
        here.scope->record.bytes_out = response.body.size();
        return;
    }
    to_engine(request, response, std::move(body));
}

void Supervisor::to_engine(const httplib::Request& request, httplib::Response& response, std::string body) {
    Context& here = context();
    RequestRecord& record = here.scope->record;
    ProxyRequest details;
    std::string model;
    bool must_call = false;
    bool looks = only_looks(request.method, here.path);
    auto bad = [&](const std::string& message) {
        record.status = 400;
        answer_error(response, 400, error_type(400), message);
    };
    if (is_json_body(here.content_type)) {
        if (body.empty()) {
            if (!looks && methods_of(here.path).empty()) {
                record.status = 404;
                return answer_no_route(response, here.path);
            }
            if (!looks) return bad("request body: expected a JSON object, found nothing");
        } else {
            Result<RequestFacts> facts = scan_request_body(body);
            if (!facts.ok()) return bad(facts.error().message());
            if (!facts->object && here.path != "/lora-adapters") return bad("request body: expected a JSON object");
            model = std::move(facts->model);
            details.stream = facts->stream;
            auto checked = check_request(here.path, body, here.state->config.loose_patterns);
            if (!checked.ok()) return bad(checked.error().message());
            must_call = checked->must_call;
            if (!checked->loosened.empty() && !told_of_patterns_.exchange(true))
                log_warning("server", "field '" + printable(checked->loosened) +
                                          "' makes no grammar and stands for any string, since loose_patterns is on; "
                                          "this is told once");
            if (checked->body) body = std::move(*checked->body);
        }
    } else if (starts_with_nocase(here.content_type, "multipart/")) {
        model = multipart_field(body, here.content_type, "model");
    }
    if (model.empty()) model = request.get_param_value("model");

    ClientStream* client = HttpServer::current();
    details.client = client ? client->socket() : -1;
    details.end = http_.end_event();
    const auto gone = [&] { return details.client >= 0 && peer_gone(details.client); };
    const FatalRequests::Key key = FatalRequests::key_of(here.path, body);
    auto turn = looks ? std::optional<FatalRequests::Turn>(std::in_place)
                      : fatal_.wait_for_turn(key, kTurnWait, [&] { return draining_ || gone(); });
    if (!turn && draining_ && !gone()) {
        record.status = 503;
        return answer_stopping(response);
    }
    if (!turn)
        return refuse(response,
                      gone()
                          ? Error{ErrorCode::cancelled, "request", "a client", "that it has left", ""}
                          : Error{ErrorCode::unavailable, "request", "its turn",
                                  "another of those that were in flight when an engine ended, which run one at a time",
                                  "try again"},
                      std::chrono::seconds(5));
    if (const auto ended = looks ? std::nullopt : fatal_.refused(key)) {
        record.status = 400;
        return answer_error(response, 400, error_type(400),
                            "request: it was in flight when " +
                                (*ended == 1 ? "its engine ended" : std::to_string(*ended) + " engines ended") +
                                " and is refused for " + std::to_string(FatalRequests::kKept.count()) +
                                " minutes; change it, the server's log says what happened",
                            "request_ends_engine");
    }
    std::chrono::milliseconds retry_after{0};
    Result<Fleet::Lease> lease =
        looks ? fleet_->acquire_loaded(model, false) : fleet_->acquire(model, true, gone, &retry_after);
    if (!lease.ok()) return refuse(response, lease.error(), retry_after);
    if (must_call && !knows_tools(*lease))
        return bad("field 'tool_choice': expected auto or none, because the chat template of model '" + lease->model() +
                   "' has no tools, found a call that is required; take a model that has tools, or give the model "
                   "such a template with -- --chat-template-file FILE");
    if (!looks) details.flight = fatal_.begin(key, lease->engine().socket().string(), std::move(*turn));
    details.content_type = here.content_type;
    details.body = std::move(body);
    proxy_request(request, response, std::move(*lease), std::move(details), here.scope, parts_.times);
}

}  // namespace onebit
