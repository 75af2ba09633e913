// Asks a running `1bit serve` over HTTP, for ps and unload.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onebit {

struct ServerAddress {
    std::string host = "127.0.0.1";
    uint16_t port = 8080;
    std::string text() const;  // "http://127.0.0.1:8080", IPv6 in brackets
};

// "http://host:port", "host:port", "host", "[::1]:8080", ":8080". Error usage; unsupported for https.
Result<ServerAddress> parse_server_address(const std::string& text);

// Where a client on this machine reaches a server that listens on `host`: a wildcard is not an address to ask.
std::string reachable_host(const std::string& host);

struct ServerFlags {
    std::string url, host, api_key_file, config_file;
    std::optional<uint16_t> port;
    std::vector<std::string> api_keys;
};
void add_server_flags(CLI::App* app, ServerFlags* flags);

// For the commands that put one question to a server.
struct ServerQuestion {
    ServerFlags server;
    bool json = false;
};
// add_server_flags() and --json.
void add_question_flags(CLI::App* app, ServerQuestion* question);
// Asks as ask_server() does and prints the answer, with --json as it came, else as `text` puts it. The exit code.
int ask_and_print(const ServerQuestion& question, const std::string& path, const std::string& body,
                  const std::function<Result<std::string>(const std::string& answer)>& text);

// --url or --host and --port, else $ONEBIT_HOST, else host and port of onebit.yaml.
Result<ServerAddress> server_address(const ServerFlags& flags);

// body empty: GET, otherwise POST of JSON. The body of the answer; an error of the server's becomes an Error with its
// message. Error unavailable when nothing listens there.
Result<std::string> ask_server(const ServerFlags& flags, const std::string& path, const std::string& body);

// The answer of GET /onebit/ps as a table.
Result<std::string> engines_table(std::string_view json);

}  // namespace onebit
