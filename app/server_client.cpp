#include "app/server_client.h"

#include <cpp-httplib/httplib.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/command_line.h"
#include "app/output.h"
#include "app/serve_flags.h"
#include "engine/devices_text.h"
#include "server/config.h"

namespace onebit {
namespace {

using Json = nlohmann::json;

// Unloading waits for running requests, as long as the server's drain time-out.
constexpr time_t kConnectSeconds = 5, kAnswerSeconds = 300;

std::string text_of(const Json& object, const char* key, const std::string& fallback = "-") {
    auto found = object.find(key);
    if (found == object.end() || found->is_null()) return fallback;
    if (found->is_string()) return printable(found->get<std::string>());
    return found->dump();
}

std::string bytes_of(const Json& object, const char* key) {
    auto found = object.find(key);
    return found != object.end() && found->is_number() ? bytes_text(found->get<uint64_t>()) : "-";
}

// One line of ours for each line there.
std::string lines_of(const Json& object, const char* key) {
    auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return {};
    std::string text;
    std::istringstream lines(found->get<std::string>());
    for (std::string line; std::getline(lines, line);) text += "    " + printable(line) + "\n";
    return text;
}

std::string until_of(const Json& engine) {
    auto left = engine.find("keep_alive_left_seconds");
    if (left == engine.end() || !left->is_number()) return "stays";
    return std::to_string(int64_t(left->get<double>())) + " s";
}

}  // namespace

std::string ServerAddress::text() const {
    std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
    return "http://" + name + ":" + std::to_string(port);
}

Result<ServerAddress> parse_server_address(const std::string& text) {
    const Error wrong{ErrorCode::usage, "address of the server", "http://HOST:PORT or HOST:PORT", "'" + text + "'", ""};
    std::string rest = text;
    if (rest.starts_with("https://"))
        return Error{ErrorCode::unsupported, "address of the server", "http://", "https://",
                     "ask the server itself rather than its TLS proxy"};
    if (rest.starts_with("http://")) rest.erase(0, 7);
    while (rest.ends_with('/')) rest.pop_back();
    ServerAddress address;
    std::string port;
    if (rest.starts_with('[')) {
        size_t end = rest.find(']');
        if (end == std::string::npos) return wrong;
        address.host = rest.substr(1, end - 1);
        rest.erase(0, end + 1);
        if (!rest.empty() && rest[0] != ':') return wrong;
        if (!rest.empty()) port = rest.substr(1);
        if (!rest.empty() && port.empty()) return wrong;
    } else {
        size_t colon = rest.find(':');
        // more than one colon: an IPv6 address without brackets has no port
        if (colon != std::string::npos && rest.find(':', colon + 1) == std::string::npos) {
            port = rest.substr(colon + 1);
            if (port.empty()) return wrong;
            rest.erase(colon);
        }
        if (!rest.empty()) address.host = rest;
        if (rest.empty() && port.empty()) return wrong;
    }
    if (address.host.empty() || address.host.find_first_of(" \t\r\n/@?#") != std::string::npos) return wrong;
    if (!port.empty()) {
        Result<uint64_t> number = parse_number(port, 1, 65535);
        if (!number) return wrong;
        address.port = uint16_t(*number);
    }
    return address;
}

std::string reachable_host(const std::string& host) {
    if (host == "0.0.0.0" || host == "*") return "127.0.0.1";
    if (host == "::" || host == "[::]") return "::1";
    return host;
}

void add_server_flags(CLI::App* app, ServerFlags* flags) {
    app->add_option("--url", flags->url, "Address of the server; else $ONEBIT_HOST, else onebit.yaml's")
        ->type_name("URL");
    app->add_option("--host", flags->host, "Host of the server (127.0.0.1)")->type_name("HOST");
    add_number(app, "--port", "Port of the server (8080)", &flags->port, 1, 65535);
    add_repeated(app, "--api-key", "KEY", "The server's key; else $ONEBIT_API_KEY", &flags->api_keys);
    app->add_option("--api-key-file", flags->api_key_file, "File with the key")->type_name("FILE");
    app->add_option("--config", flags->config_file, "Configuration file of the server")->type_name("FILE");
}

namespace {

Result<ServeConfig> config_of(const ServerFlags& flags) {
    std::filesystem::path file = flags.config_file;
    std::error_code ignored;
    if (file.empty()) {
        file = default_config_file();
        if (file.empty() || !std::filesystem::exists(file, ignored)) return ServeConfig{};
    }
    return read_config(file);
}

}  // namespace

Result<ServerAddress> server_address(const ServerFlags& flags) {
    if (!flags.url.empty()) return parse_server_address(flags.url);
    ServerAddress address;
    const char* variable = std::getenv("ONEBIT_HOST");
    if (variable && *variable && flags.config_file.empty()) {
        Result<ServerAddress> given = parse_server_address(variable);
        if (!given) {
            Error error = given.error();
            error.subject = "ONEBIT_HOST";
            return error;
        }
        address = *given;
    } else if (flags.host.empty() || !flags.port) {
        Result<ServeConfig> config = config_of(flags);
        if (!config) return config.error();
        address.host = reachable_host(config->host);
        address.port = config->port;
    }
    if (!flags.host.empty()) address.host = reachable_host(flags.host);
    if (flags.port) address.port = *flags.port;
    if (address.port == 0)
        return Error{ErrorCode::usage, "port", "the server's port", "0, any free one",
                     "name the port that 1bit serve printed, with --port"};
    return address;
}

Result<std::string> ask_server(const ServerFlags& flags, const std::string& path, const std::string& body) try {
    Result<ServerAddress> address = server_address(flags);
    if (!address) return address.error();
    Result<std::vector<std::string>> keys = given_api_keys(flags.api_keys, flags.api_key_file);
    if (!keys) return keys.error();
    if (keys->empty())
        if (Result<ServeConfig> config = config_of(flags); config.ok()) *keys = config->api_keys;

    httplib::Client client(address->host, address->port);
    client.set_connection_timeout(kConnectSeconds);
    client.set_read_timeout(kAnswerSeconds);
    if (!keys->empty()) client.set_bearer_token_auth(keys->front());
    httplib::Result answer = body.empty() ? client.Get(path) : client.Post(path, body, "application/json");
    if (!answer)
        return Error{ErrorCode::unavailable, address->text(), "a running 1bit serve",
                     httplib::to_string(answer.error()), "start one with 1bit serve, or name its address with --url"};
    if (answer->status == 200 || answer->status == 202) return answer->body;

    Json json = Json::parse(answer->body, nullptr, false);
    std::string message = "status " + std::to_string(answer->status);
    if (json.is_object() && json.contains("error") && json["error"].is_object())
        message = text_of(json["error"], "message", message);
    else if (answer->status == 404)
        message = "a server that does not know " + path;
    ErrorCode code = answer->status == 404   ? ErrorCode::not_found
                     : answer->status >= 500 ? ErrorCode::unavailable
                                             : ErrorCode::invalid;
    std::string remedy = answer->status == 401 || answer->status == 403
                             ? "give the server's key with --api-key-file or $ONEBIT_API_KEY"
                             : "";
    return Error{code, address->text(), "", message, remedy};
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, path, "an answer", error.what(), ""};
}

void add_question_flags(CLI::App* app, ServerQuestion* question) {
    add_server_flags(app, &question->server);
    app->add_flag("--json", question->json, "Print the server's own JSON");
}

int ask_and_print(const ServerQuestion& question, const std::string& path, const std::string& body,
                  const std::function<Result<std::string>(const std::string&)>& text) {
    Result<std::string> answer = ask_server(question.server, path, body);
    if (!answer) return report(answer.error());
    Result<std::string> shown = question.json ? *answer + (answer->ends_with('\n') ? "" : "\n") : text(*answer);
    if (!shown) return report(shown.error());
    print(*shown);
    return 0;
}

Result<std::string> engines_table(std::string_view text) {
    Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("engines") || !json["engines"].is_array())
        return Error{ErrorCode::invalid, "answer of /onebit/ps", "a list of engines", "something else",
                     "is that address a 1bit serve?"};
    if (json["engines"].empty()) return std::string("no model is loaded\n");
    std::vector<std::vector<std::string>> rows = {
        {"MODEL", "STATE", "PID", "DEVICES", "RESIDENT", "CONTEXT", "SLOTS", "REQUESTS", "RESTARTS", "UNLOADED IN"}};
    std::vector<std::vector<std::string>> memory = {{"MODEL", "DEVICE", "LAYERS", "WEIGHTS", "KV CACHE", "COMPUTE"}};
    std::string failures;
    for (const Json& engine : json["engines"]) {
        if (!engine.is_object()) continue;
        std::string devices;
        if (auto list = engine.find("devices"); list != engine.end() && list->is_array())
            for (const Json& device : *list)
                if (device.is_string()) devices += (devices.empty() ? "" : ",") + printable(device.get<std::string>());
        if (auto list = engine.find("memory"); list != engine.end() && list->is_array())
            for (const Json& one : *list)
                if (one.is_object())
                    memory.push_back({text_of(engine, "id"), text_of(one, "device"), text_of(one, "layers"),
                                      bytes_of(one, "weights_bytes"), bytes_of(one, "kv_cache_bytes"),
                                      bytes_of(one, "compute_bytes")});
        std::string state = text_of(engine, "state");
        if (auto progress = engine.find("load_progress");
            state == "starting" && progress != engine.end() && progress->is_number())
            state += " " + std::to_string(int(progress->get<double>() * 100)) + " %";
        rows.push_back({text_of(engine, "id"), state, text_of(engine, "pid"), devices.empty() ? "auto" : devices,
                        bytes_of(engine, "resident_bytes"), text_of(engine, "context_per_slot"),
                        text_of(engine, "slots"), text_of(engine, "requests_in_flight"), text_of(engine, "restarts"),
                        until_of(engine)});
        if (std::string failure = text_of(engine, "last_failure", ""); !failure.empty())
            failures += text_of(engine, "id") + ": last failure: " + failure + "\n" + lines_of(engine, "last_output");
        if (auto list = engine.find("excluded_members"); list != engine.end() && list->is_array())
            for (const Json& one : *list)
                if (one.is_object())
                    failures += text_of(engine, "id") + ": without " + text_of(one, "member") + ": " +
                                text_of(one, "reason") + "\n";
    }
    return text_table(rows) + (memory.size() > 1 ? "\n" + text_table(memory) : "") + failures;
}

}  // namespace onebit
