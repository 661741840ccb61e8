// SPDX-License-Identifier: Apache-2.0
//
// Errors as values: a function that can fail returns Result<T>, or Status if it has no value to
// return. The API is a subset of std::expected, so that Result can become an alias for it. Nothing
// in this file throws or allocates, except describe(). docs/decisions/0001-result-not-exceptions.md
// has the reasons.
#pragma once

#include <cerrno>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/check/assert.h"

namespace beeline {

enum class Errc : std::uint32_t {
  kOk = 0,       // only inside a Status that holds no error
  kInvalid,      // an argument, a file or a message is not valid
  kNotFound,     // no such device, file, symbol or key
  kDenied,       // a permission or an access right is missing
  kNoMemory,     // memory or a fixed pool is used up
  kBusy,         // in use; the same call may succeed later
  kUnsupported,  // this device or this build cannot do it
  kTimeout,      // a peer or a device did not answer in time
  kPeerClosed,   // the peer closed the connection
  kProtocol,     // the peer violated the protocol
  kSystem,       // a system call failed; sys_errno has the reason
  kInternal,     // a bug in Beeline
};

const char* to_string(Errc code) noexcept;

struct Error {
  Errc code = Errc::kOk;
  int sys_errno = 0;      // 0 if no system call failed
  const char* what = "";  // a literal: the action that failed, in lower case, without a full stop
};
static_assert(sizeof(Error) == 16 && std::is_trivially_copyable_v<Error>);

// "open the fabric file: No such file or directory (not found)". Only for messages.
std::string describe(const Error& error);

// An error that converts to a Result of any type. fail() returns it.
template <class E>
struct Failure {
  E error;
};

constexpr Failure<Error> fail(Errc code, const char* what, int sys_errno = 0) noexcept {
  return {{code, sys_errno, what}};
}
inline Failure<Error> fail_errno(const char* what) noexcept {
  return fail(Errc::kSystem, what, errno);
}
template <class E>
constexpr Failure<std::decay_t<E>> fail(E&& error) {
  return {std::forward<E>(error)};
}

// Types that a Result takes as its value: those that convert to T, except the Result itself.
template <class U, class T, class Self>
concept IntoResult = !std::same_as<std::remove_cvref_t<U>, Self> && std::convertible_to<U, T>;

template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  template <class U = T>
  requires IntoResult<U&&, T, Result>
  constexpr Result(U&& value) : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  template <class G>
  requires std::constructible_from<E, G&&>
  constexpr Result(Failure<G> failure) : held_(std::in_place_index<1>, std::move(failure.error)) {}

  constexpr bool has_value() const noexcept { return held_.index() == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  constexpr T* operator->() noexcept { return checked(std::get_if<0>(&held_)); }
  constexpr const T* operator->() const noexcept { return checked(std::get_if<0>(&held_)); }
  constexpr T& operator*() & noexcept { return *operator->(); }
  constexpr const T& operator*() const& noexcept { return *operator->(); }
  constexpr T&& operator*() && noexcept { return std::move(*operator->()); }
  constexpr T& value() & noexcept { return *operator->(); }
  constexpr const T& value() const& noexcept { return *operator->(); }
  constexpr T&& value() && noexcept { return std::move(*operator->()); }
  template <class U>
  constexpr T value_or(U&& otherwise) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(otherwise));
  }

  constexpr const E& error() const& noexcept { return *checked(std::get_if<1>(&held_)); }
  constexpr E&& error() && noexcept { return std::move(*checked(std::get_if<1>(&held_))); }

 private:
  // Asking for the alternative that is not held is a bug in the caller.
  template <class Alternative>
  static constexpr Alternative* checked(Alternative* alternative) noexcept {
    BL_ASSERT(alternative != nullptr, "the Result holds the alternative that is asked for");
    if (alternative == nullptr) __builtin_unreachable();
    return alternative;
  }

  std::variant<T, E> held_;
};

// Result<void> holds an error or nothing. Error has a spare code for "nothing", so that a Status is
// 16 bytes and is returned in two registers; other error types need an optional.
template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  constexpr Result() noexcept = default;
  template <class G>
  requires std::constructible_from<E, G&&>
  constexpr Result(Failure<G> failure) : error_(std::move(failure.error)) {
    BL_ASSERT(!has_value(), "a failure has a code other than kOk");
  }

  constexpr bool has_value() const noexcept {
    if constexpr (std::same_as<E, Error>) {
      return error_.code == Errc::kOk;
    } else {
      return !error_.has_value();
    }
  }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  constexpr void value() const noexcept { BL_ASSERT(has_value(), "the Status holds no error"); }

  constexpr const E& error() const& noexcept {
    BL_ASSERT(!has_value(), "the Result holds an error");
    if constexpr (std::same_as<E, Error>) {
      return error_;
    } else {
      return *error_;
    }
  }
  constexpr E&& error() && noexcept {
    return std::move(const_cast<E&>(std::as_const(*this).error()));
  }

 private:
  std::conditional_t<std::same_as<E, Error>, Error, std::optional<E>> error_;
};

using Status = Result<void>;
static_assert(sizeof(Status) == 16 && std::is_trivially_copyable_v<Status>);

}  // namespace beeline

// Evaluates to the value of a Result, or returns its error from the enclosing function:
//   UniqueFd fd = BL_TRY(open_page(name));
// Each use declares a variable with a name of its own, so that BL_TRY can be nested.
#define BL_TRY(...) BL_TRY_NUMBERED_(__COUNTER__, __VA_ARGS__)
#define BL_TRY_NUMBERED_(number, ...) BL_TRY_NAMED_(number, __VA_ARGS__)
#define BL_TRY_NAMED_(number, ...)                                \
  ({                                                              \
    auto bl_try_##number = (__VA_ARGS__);                         \
    if (!bl_try_##number) [[unlikely]]                            \
      return ::beeline::fail(std::move(bl_try_##number).error()); \
    std::move(bl_try_##number).value();                           \
  })
