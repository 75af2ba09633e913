#include "server/supervisor/access.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/hash.h"

namespace onebit {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
    return result;
}

bool is_address(std::string_view host) {
    std::string text(host);
    unsigned char bytes[16];
    return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::string_view bearer_token(std::string_view value) {
    constexpr std::string_view kScheme = "bearer ";
    value = trimmed(value);
    if (value.size() < kScheme.size() || lower(value.substr(0, kScheme.size())) != kScheme) return {};
    return trimmed(value.substr(kScheme.size()));
}

}  // namespace

bool is_loopback_name(std::string_view host) {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    std::string name = lower(host);
    if (!name.empty() && name.back() == '.') name.pop_back();
    if (name == "localhost" || name.ends_with(".localhost")) return true;
    in_addr v4{};
    if (inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    in6_addr v6{};
    if (inet_pton(AF_INET6, name.c_str(), &v6) == 1) {
        if (IN6_IS_ADDR_LOOPBACK(&v6)) return true;
        return IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127;
    }
    return false;
}

std::string_view host_without_port(std::string_view authority) {
    auto is_port = [](std::string_view text) {
        return text.empty() || (text[0] == ':' && text.find_first_not_of("0123456789", 1) == std::string_view::npos);
    };
    if (authority.empty()) return {};
    if (authority.front() == '[') {
        size_t end = authority.find(']');
        if (end == std::string_view::npos || !is_port(authority.substr(end + 1))) return {};
        return authority.substr(1, end - 1);
    }
    size_t first = authority.find(':');
    if (first == std::string_view::npos) return authority;
    if (authority.find(':', first + 1) != std::string_view::npos) return authority;  // bare IPv6
    return is_port(authority.substr(first)) ? authority.substr(0, first) : std::string_view{};
}

std::string_view origin_authority(std::string_view origin) {
    size_t mark = origin.find("://");
    if (mark == std::string_view::npos || mark == 0) return {};
    std::string_view rest = origin.substr(mark + 3);
    if (rest.find_first_of("/?#@ ") != std::string_view::npos) return {};
    return rest;
}

AccessRules::AccessRules(const ServeConfig& config) {
    for (const std::string& key : config.api_keys) keys_.push_back(sha256(key));
    for (const std::string& origin : config.cors_origins) {
        if (origin == "*") {
            any_origin_ = true;
            continue;
        }
        origins_.push_back(lower(origin));
        if (std::string_view host = host_without_port(origin_authority(origin)); !host.empty())
            hosts_.push_back(lower(host));
    }
    loopback_ = is_loopback_name(config.host);
    if (!is_address(config.host)) hosts_.push_back(lower(config.host));
    char name[256] = {};
    if (gethostname(name, sizeof(name) - 1) == 0 && name[0]) {
        // only for same-origin requests on a public binding, never for the loopback host check
        own_names_.push_back(lower(name));
        own_names_.push_back(lower(name) + ".local");
    }
}

bool AccessRules::key_fits(std::string_view key) const {
    Digest digest = sha256(key);
    bool fits = false;
    for (const auto& known : keys_) {
        unsigned difference = 0;
        for (size_t i = 0; i < digest.size(); i++) difference |= std::to_integer<unsigned>(digest[i] ^ known[i]);
        fits |= difference == 0;
    }
    return fits;
}

bool AccessRules::host_allowed(std::string_view host) const {
    std::string_view name = host_without_port(host);
    return is_loopback_name(name) || std::find(hosts_.begin(), hosts_.end(), lower(name)) != hosts_.end();
}

bool AccessRules::origin_allowed(std::string_view origin, std::string_view host) const {
    if (any_origin_) return true;
    std::string text = lower(origin);
    if (std::find(origins_.begin(), origins_.end(), text) != origins_.end()) return true;
    if (!text.starts_with("http://") && !text.starts_with("https://")) return false;
    std::string_view authority = origin_authority(text);
    std::string_view name = host_without_port(authority);
    if (name.empty()) return false;
    if (is_loopback_name(name)) return true;
    // our own page, opened by another of this machine's names: a foreign name could be rebound to us, so only
    // addresses, known names, or a server that asks for a key
    if (loopback_ || authority != lower(host)) return false;
    return is_address(name) || !keys_.empty() ||
           std::find(own_names_.begin(), own_names_.end(), std::string(name)) != own_names_.end() ||
           std::find(hosts_.begin(), hosts_.end(), std::string(name)) != hosts_.end();
}

AccessDecision AccessRules::check(const AccessRequest& request) const {
    AccessDecision decision;
    // browsers always send the header; programs of HTTP/1.0 need not
    if (loopback_ && !request.host.empty() && !host_allowed(request.host)) {
        decision.status = 403;
        decision.type = "forbidden_host";
        decision.message = "Host header: expected a loopback name or address, found '" +
                           printable(request.host.substr(0, 100)) +
                           "'; use http://127.0.0.1, or add the page's origin to cors_origins";
        return decision;
    }
    if (!request.origin.empty()) {
        if (!origin_allowed(request.origin, request.host)) {
            decision.status = 403;
            decision.type = "forbidden_origin";
            decision.message = "Origin header: pages of '" + printable(request.origin.substr(0, 100)) +
                               "' may not call this server; add the origin to cors_origins to allow it";
            return decision;
        }
        decision.allow_origin = any_origin_ ? "*" : std::string(request.origin);
    }
    if (request.method == "OPTIONS") {
        decision.status = 204;  // a preflight carries no key
        return decision;
    }
    if (keys_.empty() || request.open_path) return decision;

    std::string_view key = bearer_token(request.authorization);
    if (key.empty()) key = trimmed(request.api_key_header);
    if (key.empty()) {
        decision.status = 401;
        decision.type = "authentication_error";
        decision.message = "API key: expected 'Authorization: Bearer KEY' or 'X-Api-Key: KEY', found none";
    } else if (!key_fits(key)) {
        decision.status = 401;
        decision.type = "authentication_error";
        decision.message = "API key: the given key is not one of this server's";
    }
    return decision;
}

}  // namespace onebit
