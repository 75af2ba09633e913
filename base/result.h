// Result<T>: a value or an Error. Every boundary of a room returns one; exceptions stay inside.
#pragma once

#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace onebit {

template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    // Only when ok(): asking a failed result for its value ends the process.
    T& value() & {
        check(ok());
        return *std::get_if<0>(&state_);
    }
    const T& value() const& {
        check(ok());
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        check(ok());
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    // Only when !ok().
    const Error& error() const& {
        check(!ok());
        return *std::get_if<1>(&state_);
    }
    Error&& error() && {
        check(!ok());
        return std::move(*std::get_if<1>(&state_));
    }

private:
    static void check(bool right) {
        if (!right) std::abort();
    }
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const& {
        if (ok()) std::abort();
        return *error_;
    }
    Error&& error() && {
        if (ok()) std::abort();
        return std::move(*error_);
    }

private:
    std::optional<Error> error_;
};

}  // namespace onebit

// Returns the error of a Result from the enclosing function, which returns a Result itself.
#define ONEBIT_RETURN_IF_ERROR(expression)                                                                   \
    do {                                                                                                     \
        if (auto onebit_result = (expression); !onebit_result.ok()) return std::move(onebit_result).error(); \
    } while (false)
