// The value of a call that must work, for tests and benchmarks: elsewhere errors are handed on.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace onebit {

// Ends the test with the message otherwise, by an exception.
template <typename T>
T must(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message());
    return std::move(result).value();
}
inline void must(const Result<void>& result) {
    if (!result.ok()) throw std::runtime_error(result.error().message());
}

}  // namespace onebit
