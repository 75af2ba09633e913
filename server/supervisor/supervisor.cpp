#include "server/supervisor/supervisor.h"

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "server/supervisor/banner.h"
#include "server/supervisor/known_routes.h"
#include "server/supervisor/responses.h"
#include "server/supervisor/web_page.h"

namespace onebit {

namespace {

constexpr auto kLastWords = std::chrono::seconds(1);

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
    http_.set_head_refused(
        [this](int status, const std::string& method, const std::string& target, const std::string& client) {
            RequestScope scope(metrics_, printable(method), printable(target), client);
            scope.record.status = status;
        });
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
    if (is_surely_unknown(here.path)) {
        record.status = 404;
        response.set_header("Connection", "close");  // its body was not read
        answer_no_route(response, here.path);
        return Handler::Handled;
    }
    if (const std::string_view allow = methods_of(here.path); !allow.empty() && !has_method(allow, request.method)) {
        record.status = 405;
        response.set_header("Allow", std::string(allow));
        response.set_header("Connection", "close");  // its body was not read
        answer_error(response, 405, error_type(405),
                     "method: expected one of " + std::string(allow) + ", found " + request.method);
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
    const bool parsed = here.scope != nullptr;
    if (!parsed)
        here.scope = std::make_shared<RequestScope>(metrics_, printable(request.method), printable(request.target),
                                                    request.remote_addr);
    RequestRecord& record = here.scope->record;
    if (record.status == 0) record.status = response.status;
    if (parsed) put_in_form(here.path, response.body);
    if (!response.body.empty() || response.content_provider_ || request.method == "HEAD") return;
    const char* message = "the request is not valid HTTP/1.1";
    switch (response.status) {
        case 404:
            answer_no_route(response, parsed ? here.path : request.target);
            if (parsed) put_in_form(here.path, response.body);
            return;
        case 408:
            message = "the request did not arrive within the read time-out";
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
    if (parsed) put_in_form(here.path, response.body);
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

void Supervisor::kill_engines() { fleet_->limit_stop(Fleet::Clock::now()); }

void Supervisor::stop(Fleet::Clock::time_point kill_at) {
    if (stopped_.exchange(true)) return;
    drain();
    http_.end_requests();
    // clients read why before their connections and engines go; one that does not read is not waited for
    const auto until = Fleet::Clock::now() + kLastWords;
    while ((!quiet() || http_.answering() > 0) && Fleet::Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    http_.abort_connections();
    http_.stop();
    fleet_->stop(kill_at);
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
    if (std::string warning = exposure_warning(config); !warning.empty()) log_warning("server", warning);
    return {};
}

}  // namespace onebit
