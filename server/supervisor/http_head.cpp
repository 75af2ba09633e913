#include "server/supervisor/http_head.h"

#include <strings.h>

#include <algorithm>

#include <cpp-httplib/httplib.h>

#include "base/error.h"

namespace onebit {
namespace {

// What cpp-httplib reads at most, without the line's end.
constexpr size_t kMostRequestLine = CPPHTTPLIB_MAX_LINE_LENGTH - 2, kMostField = CPPHTTPLIB_HEADER_MAX_LENGTH - 2;
constexpr size_t kMostFields = CPPHTTPLIB_HEADER_MAX_COUNT;
constexpr size_t kMostHead = 128 << 10;
constexpr size_t kMostMethod = 32;

bool is_token(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_name(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token); }

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// Calls each(item) for what stands between commas.
template <typename Each>
void for_each_item(std::string_view list, Each each) {
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        if (const std::string_view item = trimmed(list.substr(0, comma)); !item.empty()) each(item);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
}

bool in_list(std::string_view list, std::string_view word) {
    bool found = false;
    for_each_item(list, [&](std::string_view item) { found = found || item == word; });
    return found;
}

bool is_version(std::string_view text) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
}

std::string shown(std::string_view text) {
    return "'" + printable(text.substr(0, 60)) + (text.size() > 60 ? "...'" : "'");
}

std::string at_most(size_t bytes) { return "expected at most " + std::to_string(bytes) + " bytes, found more"; }

}  // namespace

HeadReader::State HeadReader::fail(int status, std::string message, bool allow) {
    fault_ = {status, std::move(message), allow};
    return State::fault;
}

// Other protocols show in their first bytes, and their clients wait for an answer before they send an end of line.
HeadReader::State HeadReader::look_at_start(std::string_view partial) {
    if (partial.empty()) return State::incomplete;
    if (partial[0] == 0x16) return fail(400, "TLS: this port speaks HTTP without it; use http:// in place of https://");
    const std::string_view method = partial.substr(0, std::min(partial.find_first_of(" \r"), kMostMethod + 1));
    if (!is_name(method) && !method.empty()) return fail(400, "request line: the bytes that came are not HTTP");
    if (method.size() > kMostMethod)
        return fail(501, "method: expected one of " + std::string(kMethods) + ", found " + shown(method), true);
    return State::incomplete;
}

HeadReader::State HeadReader::take_request_line(std::string_view line) {
    const size_t first = line.find(' '), last = line.rfind(' ');
    if (first == std::string_view::npos || first == 0 || last == first || last + 1 == line.size() ||
        line.find(' ', first + 1) != last || last == first + 1)
        return fail(400, "request line: expected 'METHOD /path HTTP/1.1', found " + shown(line));
    method_ = line.substr(0, first);
    target_ = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (!is_version(version)) return fail(400, "HTTP version: expected HTTP/1.1, found " + shown(version));
    version_1_0_ = version == "HTTP/1.0";
    if (!version_1_0_ && version != "HTTP/1.1")
        return fail(505, "HTTP version: expected HTTP/1.1 or HTTP/1.0, found " + shown(version));
    if (method_ == "TRACE" || method_ == "CONNECT")
        return fail(405, "method: expected one of " + std::string(kMethods) + ", found " + method_, true);
    if (!in_list(kMethods, method_))
        return fail(501, "method: expected one of " + std::string(kMethods) + ", found " + shown(method_), true);
    if (target_[0] == '/' || (target_ == "*" && method_ == "OPTIONS")) return State::incomplete;

    constexpr std::string_view kScheme = "http://";
    if (!same(std::string_view(target_).substr(0, kScheme.size()), kScheme))
        return fail(400, "request line: expected a path that begins with '/', found " + shown(target_));
    const std::string_view rest = std::string_view(target_).substr(kScheme.size());
    const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
    authority_ = rest.substr(0, end);
    path_ = rest.substr(end);
    if (authority_.empty() || authority_.size() > 300 || authority_.find('@') != std::string::npos)
        return fail(400, "request line: expected http://HOST/path, found " + shown(target_));
    if (path_.empty() || path_[0] != '/') path_.insert(0, method_ == "OPTIONS" && path_.empty() ? "*" : "/");
    return State::incomplete;
}

HeadReader::State HeadReader::take_field(std::string_view line) {
    if (line.size() > kMostField) return fail(431, "header field: " + at_most(kMostField));
    if (lines_ > kMostFields)
        return fail(431, "header fields: expected at most " + std::to_string(kMostFields) + ", found more");
    if (line[0] == ' ' || line[0] == '\t')
        return fail(400, "header field: expected its value on one line, found one that goes on on the next");
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_name(name))
        return fail(400, "header field: expected 'NAME: VALUE', found " + shown(line));
    if (same(name, "host")) hosts_++;
    if (same(name, "transfer-encoding")) {
        has_coding_ = true;
        codings_.append(",").append(line.substr(colon + 1));
    }
    return State::incomplete;
}

// RFC 9112 6.1 and 6.3: a body whose end nobody knows is a fault, a coding that is not known is not implemented.
HeadReader::State HeadReader::check_codings() {
    if (!has_coding_) return State::complete;
    size_t count = 0, chunked = 0;
    std::string last, unknown;
    for_each_item(codings_, [&](std::string_view item) {
        count++;
        last = item;
        if (same(item, "chunked"))
            chunked++;
        else if (unknown.empty())
            unknown = item;
    });
    if (chunked != 1 || !same(last, "chunked"))
        return fail(400, "Transfer-Encoding header: expected 'chunked', once and last, found " +
                             shown(std::string_view(codings_).substr(1)));
    if (count > 1)
        return fail(501, "Transfer-Encoding header: expected 'chunked' alone, found " + shown(unknown) + " too");
    return State::complete;
}

HeadReader::State HeadReader::look(std::string_view bytes) {
    for (;;) {
        const size_t end = bytes.find("\r\n", searched_);
        if (lines_ == 0)
            if (look_at_start(bytes.substr(0, end)) == State::fault) return State::fault;
        if (end == std::string_view::npos) {
            const size_t partial = bytes.size() - line_start_;
            searched_ = bytes.size() > line_start_ ? bytes.size() - 1 : line_start_;
            // the last byte may be the one before the end of the line
            if (lines_ == 0 && partial > kMostRequestLine + 1)
                return fail(414, "request line: " + at_most(kMostRequestLine));
            if (lines_ > 0 && partial > kMostField + 1) return fail(431, "header field: " + at_most(kMostField));
            if (bytes.size() > kMostHead) return fail(431, "header fields: " + at_most(kMostHead));
            return State::incomplete;
        }
        const std::string_view line = bytes.substr(line_start_, end - line_start_);
        if (lines_ == 0 && line.size() > kMostRequestLine)
            return fail(414, "request line: " + at_most(kMostRequestLine));
        line_start_ = searched_ = end + 2;
        if (line_start_ > kMostHead) return fail(431, "header fields: " + at_most(kMostHead));
        if (line.empty() && lines_ > 0) break;
        const State state = lines_ == 0 ? take_request_line(line) : take_field(line);
        if (state == State::fault) return state;
        lines_++;
    }
    if (hosts_ > 1) return fail(400, "Host header: expected one, found " + std::to_string(hosts_));
    if (hosts_ == 0 && !version_1_0_ && authority_.empty())
        return fail(400, "Host header: expected one, as HTTP/1.1 asks for, found none");
    return check_codings();
}

std::optional<std::string> HeadReader::rewritten(std::string_view bytes) const {
    if (authority_.empty()) return {};
    std::string head = method_ + " " + path_ + (version_1_0_ ? " HTTP/1.0" : " HTTP/1.1") + "\r\nHost: " + authority_;
    head += "\r\n";
    size_t start = bytes.find("\r\n") + 2;
    while (start < length()) {
        const size_t end = bytes.find("\r\n", start) + 2;
        if (!same(bytes.substr(start, 5), "host:")) head += bytes.substr(start, end - start);
        start = end;
    }
    return head;
}

}  // namespace onebit
