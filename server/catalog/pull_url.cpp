#include "server/catalog/pull_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace onebit {
namespace {

Error bad_url(const std::string& subject, std::string_view text) {
    return {ErrorCode::usage, subject, "an http:// or https:// address without a user name",
            "'" + std::string(text.substr(0, 200)) + "'", "check the address of the hub"};
}

bool has_control_or_space(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c == 127; });
}

// "." and ".." taken out, as a relative redirect needs.
std::string merge_path(const std::string& base_target, std::string_view relative) {
    std::string path = base_target.substr(0, base_target.find('?'));
    path.resize(path.rfind('/') + 1);
    const size_t query = relative.find('?');
    std::string_view rest = relative.substr(0, query);
    while (!rest.empty()) {
        const size_t slash = rest.find('/');
        const std::string_view part = rest.substr(0, slash);
        if (part == "..") {
            if (path.size() > 1) path.resize(path.rfind('/', path.size() - 2) + 1);
        } else if (part != ".") {
            path += part;
            if (slash != std::string_view::npos) path += '/';
        }
        rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    }
    if (query != std::string_view::npos) path += relative.substr(query);
    return path;
}

}  // namespace

std::string HttpUrl::origin() const { return scheme + "://" + host + ":" + std::to_string(port); }

std::string HttpUrl::text() const {
    const bool usual = port == (scheme == "https" ? 443 : 80);
    return scheme + "://" + host + (usual ? "" : ":" + std::to_string(port)) + target.substr(0, target.find('?'));
}

HttpUrl HttpUrl::with_target(std::string new_target) const {
    HttpUrl copy = *this;
    copy.target = std::move(new_target);
    return copy;
}

Result<HttpUrl> parse_url(std::string_view text, const std::string& subject) {
    const size_t colon = text.find("://");
    if (colon == std::string_view::npos || has_control_or_space(text)) return bad_url(subject, text);
    HttpUrl url;
    for (char c : text.substr(0, colon)) url.scheme += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (url.scheme != "http" && url.scheme != "https") return bad_url(subject, text);

    std::string_view rest = text.substr(colon + 3);
    rest = rest.substr(0, rest.find('#'));
    const size_t path = rest.find_first_of("/?");
    std::string_view authority = rest.substr(0, path);
    if (path != std::string_view::npos) {
        url.target = std::string(rest.substr(path));
        if (url.target.front() == '?') url.target.insert(0, 1, '/');
    }
    if (authority.find('@') != std::string_view::npos) return bad_url(subject, text);

    const size_t bracket = authority.rfind(']');
    const size_t port = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    url.host = std::string(authority.substr(0, port));
    url.port = url.scheme == "https" ? 443 : 80;
    if (port != std::string_view::npos) {
        const std::string_view digits = authority.substr(port + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
        if (error != std::errc() || end != digits.data() + digits.size() || url.port < 1 || url.port > 65535)
            return bad_url(subject, text);
    }
    if (url.host.empty()) return bad_url(subject, text);
    return url;
}

Result<HttpUrl> resolve_url(const HttpUrl& base, const std::string& location) {
    const std::string subject = "redirect from " + base.text();
    if (location.empty() || has_control_or_space(location)) return bad_url(subject, location);
    if (location.starts_with("//")) return parse_url(base.scheme + ":" + location, subject);
    const size_t colon = location.find("://");
    if (colon != std::string::npos && colon < location.find_first_of("/?#")) return parse_url(location, subject);
    const std::string target = location.substr(0, location.find('#'));
    if (target.starts_with("/")) return base.with_target(target);
    return base.with_target(merge_path(base.target, target));
}

std::string encode_url_path(std::string_view path) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (unsigned char c : path) {
        if (std::isalnum(c) || std::string_view("/-._~").find(static_cast<char>(c)) != std::string_view::npos) {
            out += static_cast<char>(c);
        } else {
            out += '%';
            out += digits[c >> 4];
            out += digits[c & 15];
        }
    }
    return out;
}

}  // namespace onebit
