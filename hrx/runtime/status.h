// Errors of the runtime as hrx_result, and the message that a thread asks for afterwards.
#pragma once

#include <string>

#include "base/result.h"
#include "hrx/runtime/hrx.h"

namespace onebit::hrx::runtime {

// Inside the runtime: io is a failed call of a driver, cancelled is work that a lost device will never finish.
hrx_result to_result(ErrorCode code);

// Keeps the message for hrx_error_message() of this thread.
hrx_result fail(const Error& error) noexcept;

Error invalid_argument(std::string subject, std::string expected, std::string found);

// The decimal form, and "0x..." for addresses.
std::string number(uint64_t value);
std::string hexadecimal(uint64_t value);

// Runs the body of a C function: no exception leaves, an error becomes the thread's message.
template <typename Body>
hrx_result guarded(Body&& body) noexcept {
    try {
        const Result<void> result = body();
        return result.ok() ? HRX_OK : fail(result.error());
    } catch (const std::bad_alloc&) {
        return fail(Error{ErrorCode::no_space, "libhrx", "memory of the host", "none left", ""});
    } catch (const std::exception& exception) {
        return fail(Error{ErrorCode::internal, "libhrx", "no exception", exception.what(), ""});
    }
}

}  // namespace onebit::hrx::runtime
