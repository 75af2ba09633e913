// The one error type. Every message names the thing, what was expected, what was found and what to do.
#pragma once

#include <string>
#include <string_view>

namespace onebit {

enum class ErrorCode {
    usage,        // the caller asked in a wrong way: exit code 2, HTTP 400
    not_found,    // a file, model or device that does not exist: HTTP 404
    invalid,      // data that does not hold what it should, such as a damaged model file: HTTP 422
    io,           // the operating system refused: HTTP 500
    no_space,     // disk or memory is too small: HTTP 507
    unavailable,  // not now: loading, stopped, network away: HTTP 503
    timeout,      // HTTP 504
    cancelled,    // the caller gave up: HTTP 499
    conflict,     // another process or setting is in the way: HTTP 409
    unsupported,  // right, but not with this build or device: HTTP 501
    internal,     // a fault of ours: HTTP 500
};

struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string subject;   // the file, key, flag, field, device or call that it is about
    std::string expected;  // may be empty
    std::string found;     // may be empty
    std::string remedy;    // what the user can do; may be empty

    // One line without a line break: "SUBJECT: expected EXPECTED, found FOUND; REMEDY". Never throws on any bytes;
    // control characters and invalid UTF-8 in the parts are replaced, so that it can go to a terminal or into JSON.
    std::string message() const;
};

// 2 for usage, 1 for everything else.
int exit_code(ErrorCode code);

// The HTTP status named beside each code above.
int http_status(ErrorCode code);

// The name of the code as it stands in JSON, such as "not_found".
const char* to_string(ErrorCode code);

// Error of code io (no_space for ENOSPC, EDQUOT and ENOMEM; not_found for ENOENT) from an errno value.
// subject: the file or call; errno_value: taken right after the call failed.
Error error_from_errno(int errno_value, std::string subject, std::string remedy = {});

// Valid UTF-8 of the bytes, invalid parts as U+FFFD and control characters but tab as spaces, as are line
// separators and direction overrides. For text that is shown.
std::string printable(std::string_view bytes);

}  // namespace onebit
