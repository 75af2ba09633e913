// Addresses of the hub and of where it redirects to.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

struct HttpUrl {
    std::string scheme;  // "http" or "https"
    std::string host;    // an IPv6 address with its brackets
    int port = 0;
    std::string target = "/";  // path and query, percent-encoded

    std::string origin() const;  // "https://host:port"
    std::string text() const;    // without the query, which may hold a signature
    HttpUrl with_target(std::string target) const;
};

// Absolute, http or https, no user name in it. subject: what the error names.
Result<HttpUrl> parse_url(std::string_view text, const std::string& subject);
// Location of a redirect, absolute or relative to base.
Result<HttpUrl> resolve_url(const HttpUrl& base, const std::string& location);
// Percent-encodes what may not stand in a path as it is; keeps '/'.
std::string encode_url_path(std::string_view path);

}  // namespace onebit
