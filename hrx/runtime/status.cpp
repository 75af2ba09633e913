#include "hrx/runtime/status.h"

#include <array>
#include <charconv>

namespace onebit::hrx::runtime {
namespace {

std::string& thread_message() {
    thread_local std::string message;
    return message;
}

std::string digits(uint64_t value, int base) {
    std::array<char, 24> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, base).ptr;
    return {text.data(), end};
}

}  // namespace

hrx_result to_result(ErrorCode code) {
    switch (code) {
        case ErrorCode::usage:
            return HRX_INVALID_ARGUMENT;
        case ErrorCode::not_found:
            return HRX_NOT_FOUND;
        case ErrorCode::invalid:
            return HRX_INVALID_DATA;
        case ErrorCode::io:
            return HRX_DRIVER_ERROR;
        case ErrorCode::no_space:
            return HRX_OUT_OF_MEMORY;
        case ErrorCode::unavailable:
            return HRX_UNAVAILABLE;
        case ErrorCode::timeout:
            return HRX_TIMEOUT;
        case ErrorCode::cancelled:
            return HRX_DEVICE_LOST;
        case ErrorCode::conflict:
            return HRX_WRONG_STATE;
        case ErrorCode::unsupported:
            return HRX_UNSUPPORTED;
        case ErrorCode::internal:
            return HRX_INTERNAL;
    }
    return HRX_INTERNAL;
}

hrx_result fail(const Error& error) noexcept {
    try {
        thread_message() = error.message();
    } catch (...) {
        // the code alone has to do
        thread_message().clear();
    }
    return to_result(error.code);
}

Error invalid_argument(std::string subject, std::string expected, std::string found) {
    return Error{ErrorCode::usage, std::move(subject), std::move(expected), std::move(found), ""};
}

std::string number(uint64_t value) { return digits(value, 10); }
std::string hexadecimal(uint64_t value) { return "0x" + digits(value, 16); }

}  // namespace onebit::hrx::runtime

using onebit::hrx::runtime::thread_message;

const char* hrx_error_message(void) { return thread_message().c_str(); }

const char* hrx_result_name(hrx_result result) {
    switch (result) {
        case HRX_OK:
            return "HRX_OK";
        case HRX_INVALID_ARGUMENT:
            return "HRX_INVALID_ARGUMENT";
        case HRX_NOT_FOUND:
            return "HRX_NOT_FOUND";
        case HRX_UNSUPPORTED:
            return "HRX_UNSUPPORTED";
        case HRX_OUT_OF_MEMORY:
            return "HRX_OUT_OF_MEMORY";
        case HRX_UNAVAILABLE:
            return "HRX_UNAVAILABLE";
        case HRX_TIMEOUT:
            return "HRX_TIMEOUT";
        case HRX_DEVICE_LOST:
            return "HRX_DEVICE_LOST";
        case HRX_DRIVER_ERROR:
            return "HRX_DRIVER_ERROR";
        case HRX_WRONG_STATE:
            return "HRX_WRONG_STATE";
        case HRX_INVALID_DATA:
            return "HRX_INVALID_DATA";
        case HRX_INTERNAL:
            return "HRX_INTERNAL";
    }
    return "unknown";
}
