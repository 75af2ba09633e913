#include "server/supervisor/responses.h"

#include <nlohmann/json.hpp>

namespace onebit {

using nlohmann::json;

const char* error_type(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 408:
            return "request_timeout";
        case 413:
            return "request_too_large";
        case 501:
            return "not_supported_error";
        case 503:
            return "unavailable_error";
        case 504:
            return "timeout_error";
        case 507:
            return "insufficient_memory";
        default:
            return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

std::string error_body(int status, std::string_view type, std::string_view message, std::string_view code) {
    json body = {{"error", {{"message", printable(message)}, {"type", std::string(type)}, {"code", status}}}};
    if (!code.empty()) body["error"]["code"] = std::string(code);
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

void put_in_form(std::string_view path, std::string& error_body) {
    const bool messages = path == "/v1/messages" || path.starts_with("/v1/messages/");
    if (messages && error_body.starts_with(R"({"error":)")) error_body.insert(1, R"("type":"error",)");
}

void answer_json(httplib::Response& response, int status, const json& body) {
    response.status = status;
    response.set_content(body.dump(-1, ' ', false, json::error_handler_t::replace), "application/json; charset=utf-8");
}

void answer_error(httplib::Response& response, int status, std::string_view type, std::string_view message,
                  std::string_view code) {
    response.status = status;
    response.set_content(error_body(status, type, message, code), "application/json; charset=utf-8");
}

void answer_error(httplib::Response& response, const Error& error, std::chrono::milliseconds retry_after) {
    int status = http_status(error.code);
    if (status == 503 || retry_after.count() > 0) {
        auto seconds = std::max<int64_t>(1, (retry_after.count() + 999) / 1000);
        response.set_header("Retry-After", std::to_string(seconds));
    }
    answer_error(response, status, error_type(status), error.message());
}

std::string no_route_body(std::string_view path) {
    constexpr size_t kMost = 200;
    return error_body(404, error_type(404),
                      "nothing is here under '" + std::string(path.substr(0, kMost)) +
                          (path.size() > kMost ? "..." : "") + "'; docs/serve.md lists the routes");
}

void answer_no_route(httplib::Response& response, std::string_view path) {
    response.status = 404;
    response.set_content(no_route_body(path), "application/json; charset=utf-8");
}

void answer_stopping(httplib::Response& response) {
    response.set_header("Retry-After", "5");
    answer_error(response, 503, error_type(503), kStopping);
}

}  // namespace onebit
