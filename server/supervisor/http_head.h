// The head of a request before cpp-httplib reads it: that parser answers all it does not take with status 400 or with
// silence, HTTP has a status for each (RFC 9110, RFC 9112).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// The methods that handlers may get.
inline constexpr std::string_view kMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

struct HeadFault {
    int status = 400;
    std::string message;
    bool allow = false;  // the answer names kMethods
};

// Looks at a head while it comes, each byte once, and judges as early as it can. Pure; one for each request.
class HeadReader {
public:
    enum class State { incomplete, complete, fault };

    // bytes: of the request from its first one, those of the last call and what has come since.
    State look(std::string_view bytes);

    // Once complete: the bytes of the head with its blank line.
    size_t length() const { return line_start_; }
    // Once complete: the head to read instead, for a target that names its host ("GET http://host/path"). The host
    // takes the place of the Host header, as RFC 9112 3.2.2 says.
    std::optional<std::string> rewritten(std::string_view bytes) const;

    const HeadFault& fault() const { return fault_; }
    // As far as they are known.
    const std::string& method() const { return method_; }
    const std::string& target() const { return target_; }

private:
    State fail(int status, std::string message, bool allow = false);
    State look_at_start(std::string_view partial);
    State take_request_line(std::string_view line);
    State take_field(std::string_view line);
    State check_codings();

    size_t line_start_ = 0, searched_ = 0, lines_ = 0, hosts_ = 0;
    std::string method_, target_, codings_, authority_, path_;
    bool version_1_0_ = false, has_coding_ = false;
    HeadFault fault_;
};

}  // namespace onebit
