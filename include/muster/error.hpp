// SPDX-License-Identifier: Apache-2.0
//
// error - what went wrong on the caller's or the environment's side, and Result, which carries it.

#pragma once

#include <string>
#include <utility>
#include <variant>

namespace muster {

enum class ErrorCode {
    /// What the user wrote is wrong: a spec, an option, a value.
    InvalidInput,
    /// A request that this cluster could not meet even when idle.
    Infeasible,
    /// Something named by the user does not exist.
    NotFound,
    /// Something is there already and must not be overwritten, or is held by another.
    Conflict,
    /// Bytes from a file or another process that do not mean anything.
    Corrupt,
    /// The operating system refused or failed.
    System,
    /// Known, but not in this version.
    NotSupported,
};

/// One failure with a message for people: what was wrong, where, and what would be right.
struct Error {
    ErrorCode code = ErrorCode::InvalidInput;
    std::string message;

    friend bool operator==(const Error&, const Error&) = default;
};

/// The value of an operation that can fail without one: only the error, or nothing.
struct Ok {
    friend bool operator==(Ok, Ok) { return true; }
};

/// Either a T or the Error that explains why there is none.
template <class T>
class [[nodiscard]] Result {
  public:
    // Implicit, so that `return value;` and `return Error{...};` both read naturally.
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    /// REQUIRES: ok().
    const T& value() const& { return std::get<0>(state_); }
    T& value() & { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    const T* operator->() const { return &value(); }
    T* operator->() { return &value(); }
    const T& operator*() const& { return value(); }
    T& operator*() & { return value(); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }

    /// REQUIRES: !ok().
    const Error& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

using Status = Result<Ok>;

}  // namespace muster
