// Who may call: API keys, browser origins and host names. Pure rules; no sockets.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/config.h"

namespace onebit {

// What the rules look at. Views into the request; an empty one is a missing header.
struct AccessRequest {
    std::string_view method, path;  // path without the query
    std::string_view host, origin;
    std::string_view authorization, api_key_header;
    bool open_path = false;  // health and the files of the web page: no key needed
};

struct AccessDecision {
    int status = 200;          // 200: go on; 204: answer a preflight; otherwise refuse with message
    std::string type;          // of the error object
    std::string message;       // never holds bytes of the request that are not printable
    std::string allow_origin;  // value of Access-Control-Allow-Origin; empty: no such header
};

// Immutable after construction, so safe from any thread.
class AccessRules {
public:
    explicit AccessRules(const ServeConfig& config);

    AccessDecision check(const AccessRequest& request) const;
    bool needs_key() const { return !keys_.empty(); }
    bool bound_to_loopback() const { return loopback_; }

private:
    bool key_fits(std::string_view key) const;
    bool origin_allowed(std::string_view origin, std::string_view host) const;
    bool host_allowed(std::string_view host) const;

    std::vector<std::array<std::byte, 32>> keys_;  // digests, so that a comparison tells neither length nor prefix
    std::vector<std::string> origins_, hosts_, own_names_;
    bool any_origin_ = false;
    bool loopback_ = true;
};

// "localhost", "x.localhost", 127.0.0.0/8 or ::1, with or without brackets; no port.
bool is_loopback_name(std::string_view host);

// The host of "name", "name:80", "[::1]:80" or "::1"; empty if it is none of these.
std::string_view host_without_port(std::string_view authority);

// The authority of "scheme://authority", empty for anything else, "null" included.
std::string_view origin_authority(std::string_view origin);

}  // namespace onebit
