#include "server/supervisor/supervisor.h"

#include <signal.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "server/supervisor/request_body.h"
#include "server/supervisor/request_check.h"
#include "server/supervisor/responses.h"
#include "server/supervisor/web_page.h"

namespace onebit {

using nlohmann::json;

struct Supervisor::Context {
    std::shared_ptr<RequestScope> scope;
    std::shared_ptr<const State> state;
    std::string path;  // as in the request line, without the query
    std::string content_type;
};

namespace {

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

Fleet::Resolve catalog_resolver(const ServeConfig& config, const CatalogFolders& folders) {
    return [config, folders](const std::string& name) {
        if (!config.model.empty()) return resolve_model(config, folders, config.model, false);
        // who starts the server may name a file by its path, who sends a request may not
        bool trusted = name == config.default_model ||
                       std::find(config.preload.begin(), config.preload.end(), name) != config.preload.end();
        return resolve_model(config, folders, name, !trusted);
    };
}

FleetLimits limits_of(const ServeConfig& config) {
    FleetLimits limits;
    limits.max_models = config.max_models;
    limits.fixed = !config.model.empty();
    limits.load_wait = config.start_timeout;
    return limits;
}

}  // namespace

Supervisor::Context& Supervisor::context() {
    thread_local Context context;
    return context;
}

Supervisor::Supervisor(ServerContext context, SupervisorParts parts)
    : context_(std::move(context)), parts_(std::move(parts)) {
    state_ = std::make_shared<const State>(State{context_.config, AccessRules(context_.config)});
    Fleet::Resolve resolve = parts_.resolve ? parts_.resolve : catalog_resolver(context_.config, context_.folders);
    fleet_ = std::make_unique<Fleet>(limits_of(context_.config), std::move(resolve), parts_.make_engine);
    fleet_->set_load_failed(parts_.load_failed);
    set_up_routes();
}

Supervisor::~Supervisor() { stop(); }

std::shared_ptr<const Supervisor::State> Supervisor::state() const {
    std::lock_guard lock(state_mutex_);
    return state_;
}

void Supervisor::set_up_routes() {
    http_.set_default_headers({{"Server", "1bit"}});
    http_.set_read_timeout_source([this] { return std::chrono::milliseconds(state()->config.read_timeout); });
    http_.set_request_end([this] {
        Context& here = context();
        here.scope.reset();
        here.state.reset();
    });
    http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
        // the server's own, non-const object: the route is chosen here, and multipart bodies must stay as they are
        return before_routing(const_cast<httplib::Request&>(request), response);
    });
    http_.set_exception_handler(
        [this](const httplib::Request&, httplib::Response& response, std::exception_ptr failure) {
            std::string text = "an unknown exception";
            try {
                std::rethrow_exception(std::move(failure));
            } catch (const std::exception& exception) {
                text = exception.what();
            } catch (...) {
            }
            log_error("server", "a request failed: " + text);
            if (context().scope) context().scope->record.status = 500;
            answer_error(response, 500, "server_error", "the server failed to answer; its log says why");
        });
    http_.set_error_handler(
        [this](const httplib::Request& request, httplib::Response& response) { on_error(request, response); });
    auto get = [this](const httplib::Request& request, httplib::Response& response) { on_get(request, response); };
    auto body = [this](const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& reader) { on_body(request, response, reader); };
    http_.Get("/", get);
    http_.Post("/", body);
    http_.Put("/", body);
    http_.Patch("/", body);
    http_.Delete("/", body);
}

httplib::Server::HandlerResponse Supervisor::before_routing(httplib::Request& request, httplib::Response& response) {
    using Handler = httplib::Server::HandlerResponse;
    Context& here = context();
    here.state = state();
    here.path = request.target.substr(0, request.target.find('?'));
    here.scope = std::make_shared<RequestScope>(metrics_, request.method, printable(here.path), request.remote_addr);
    RequestRecord& record = here.scope->record;
    for (unsigned char c : request.target) {
        if (c > 0x20 && c != 0x7f) continue;
        record.status = 400;
        answer_error(response, 400, "invalid_request_error", "request line: the address holds a control character");
        return Handler::Handled;
    }
    std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
    std::string authorization = request.get_header_value("Authorization"), key = request.get_header_value("X-Api-Key");
    bool page = (request.method == "GET" || request.method == "HEAD") && is_web_page_file(here.path);
    AccessRequest asked{request.method,
                        here.path,
                        host,
                        origin,
                        authorization,
                        key,
                        page || here.path == "/health" || here.path == "/v1/health"};
    AccessDecision decision = here.state->access.check(asked);
    if (!decision.allow_origin.empty()) {
        response.set_header("Access-Control-Allow-Origin", decision.allow_origin);
        if (decision.allow_origin != "*") response.set_header("Vary", "Origin");
    }
    if (decision.status == 204) {
        record.status = 204;
        response.status = 204;
        response.set_header("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        if (!decision.allow_origin.empty()) {
            response.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
            std::string headers = request.get_header_value("Access-Control-Request-Headers");
            response.set_header("Access-Control-Allow-Headers",
                                headers.empty() ? "Authorization, Content-Type, X-Api-Key" : headers);
            response.set_header("Access-Control-Max-Age", "600");
        }
        return Handler::Handled;
    }
    if (decision.status != 200) {
        record.status = decision.status;
        if (decision.status == 401) response.set_header("WWW-Authenticate", "Bearer");
        answer_error(response, decision.status, decision.type, decision.message);
        return Handler::Handled;
    }
    if (draining_ && here.path != "/health" && here.path != "/v1/health") {
        refuse(response, Error{ErrorCode::unavailable, "server", "a running server", "one that is stopping", ""}, {});
        return Handler::Handled;
    }
    here.content_type = request.get_header_value("Content-Type");
    request.headers.erase("Content-Type");
    request.ranges.clear();
    request.path = "/";
    return Handler::Unhandled;
}

// Also what the HTTP parser refuses by itself: those have no scope and no body yet.
void Supervisor::on_error(const httplib::Request& request, httplib::Response& response) {
    Context& here = context();
    if (ClientStream* stream = HttpServer::current(); stream && stream->timed_out() && response.status == 400)
        response.status = 408;
    if (!here.scope)
        here.scope = std::make_shared<RequestScope>(metrics_, printable(request.method), printable(request.target),
                                                    request.remote_addr);
    RequestRecord& record = here.scope->record;
    if (record.status == 0) record.status = response.status;
    if (!response.body.empty() || response.content_provider_ || request.method == "HEAD") return;
    const char* message = "the request is not valid HTTP/1.1";
    switch (response.status) {
        case 404:
            message = "nothing is here under that address";
            break;
        case 408:
            message = "the request did not arrive within the read time-out";
            break;
        case 414:
            message = "request line: longer than 32768 bytes";
            break;
        case 415:
            message = "Content-Encoding header: compressed bodies are not supported";
            break;
        case 416:
            message = "Range header: not a valid range";
            break;
        case 500:
            message = "the server failed to answer; its log says why";
            break;
        default:
            break;
    }
    answer_error(response, response.status, error_type(response.status), message);
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
            return answer_error(response, 404, "not_found_error", "nothing is here under that address");
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
    bool looks = only_looks(request.method, here.path);
    auto bad = [&](const std::string& message) {
        record.status = 400;
        answer_error(response, 400, error_type(400), message);
    };
    if (is_json_body(here.content_type)) {
        if (body.empty()) {
            if (!looks) return bad("request body: expected a JSON object, found nothing");
        } else {
            Result<RequestFacts> facts = scan_request_body(body);
            if (!facts.ok()) return bad(facts.error().message());
            if (!facts->object && here.path != "/lora-adapters") return bad("request body: expected a JSON object");
            model = std::move(facts->model);
            details.stream = facts->stream;
            if (facts->check) {
                auto checked = check_request(here.path, body);
                if (!checked.ok()) return bad(checked.error().message());
                if (*checked) body = std::move(**checked);
            }
        }
    } else if (starts_with_nocase(here.content_type, "multipart/")) {
        model = multipart_field(body, here.content_type, "model");
    }
    if (model.empty()) model = request.get_param_value("model");

    ClientStream* client = HttpServer::current();
    details.client = client ? client->socket() : -1;
    std::chrono::milliseconds retry_after{0};
    Result<Fleet::Lease> lease =
        looks ? fleet_->acquire_loaded(model, false)
              : fleet_->acquire(
                    model, true, [&] { return details.client >= 0 && peer_gone(details.client); }, &retry_after);
    if (!lease.ok()) return refuse(response, lease.error(), retry_after);
    details.content_type = here.content_type;
    details.body = std::move(body);
    proxy_request(request, response, std::move(*lease), std::move(details), here.scope, parts_.times);
}

Result<uint16_t> Supervisor::bind() { return http_.bind(context_.config.host, context_.config.port); }

Result<void> Supervisor::start_models() {
    const ServeConfig& config = context_.config;
    if (!config.model.empty()) return fleet_->load(config.model);
    for (const std::string& name : models_at_start(config))
        if (Result<void> loading = fleet_->load(name); !loading.ok())
            log_warning("server", "loading at start: " + loading.error().message());
    return {};
}

void Supervisor::serve() { http_.listen_after_bind(); }

void Supervisor::drain() {
    draining_ = true;
    fleet_->stop_accepting();
    http_.drain();
}

bool Supervisor::quiet() const { return metrics_.in_flight() == 0; }

void Supervisor::kill_engines() {
    for (const EngineView& engine : fleet_->engines())
        if (engine.status.pid > 0) ::kill(static_cast<pid_t>(engine.status.pid), SIGKILL);
}

void Supervisor::stop() {
    if (stopped_.exchange(true)) return;
    fleet_->stop_accepting();
    http_.drain();
    http_.abort_connections();
    http_.stop();
    fleet_->stop();
}

Result<void> Supervisor::reload() {
    std::lock_guard one(reload_mutex_);
    if (!context_.reload)
        return Error{ErrorCode::unsupported, "reload", "a configuration file", "none", "start with --config FILE"};
    Result<ServeConfig> fresh = context_.reload();
    if (!fresh.ok()) {
        log_error("server", "reload refused, the old configuration stays: " + fresh.error().message());
        return fresh.error();
    }
    ServeConfig config = std::move(*fresh);
    const ServeConfig& old = context_.config;
    if (config.host != old.host || config.port != old.port || config.model != old.model)
        log_warning("server", "reload: host, port and the fixed model change only with a restart");
    config.host = old.host;
    config.port = old.port;
    config.model = old.model;
    {
        std::lock_guard lock(state_mutex_);
        state_ = std::make_shared<const State>(State{config, AccessRules(config)});
    }
    fleet_->reconfigure(limits_of(config),
                        parts_.resolve ? parts_.resolve : catalog_resolver(config, context_.folders));
    log_info("server", "configuration read again");
    return {};
}

}  // namespace onebit
