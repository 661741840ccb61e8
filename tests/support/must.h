// SPDX-License-Identifier: Apache-2.0
//
// An assertion for any thread and for forked processes, where Catch2's macros do not work. It
// throws, and the caller of the body (Catch2 or a PeerGroup) reports the text.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace beeline::test {

using Clock = std::chrono::steady_clock;

// How long a test waits for something that must happen. It limits a hang, not a speed: two slow
// processors that also run other tests must stay well below it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kPatience{90};
#else
inline constexpr std::chrono::seconds kPatience{40};
#endif

class MustError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void must_failed(const char* expression, const char* file, int line,
                                     const std::string& detail = {}) {
  std::string text = std::string(file) + ":" + std::to_string(line) + ": not true: " + expression;
  if (!detail.empty()) text += " (" + detail + ")";
  throw MustError(text);
}

}  // namespace beeline::test

#define BL_MUST(expr) \
  ((expr) ? static_cast<void>(0) : ::beeline::test::must_failed(#expr, __FILE__, __LINE__))
// For calls that return an errno value, which becomes part of the text.
#define BL_MUST_OK(expr)                                                 \
  do {                                                                   \
    if (const int bl_rc = (expr); bl_rc != 0) {                          \
      ::beeline::test::must_failed(#expr, __FILE__, __LINE__,            \
                                   "returned " + std::to_string(bl_rc)); \
    }                                                                    \
  } while (false)
