// SPDX-License-Identifier: Apache-2.0
//
// BL_ASSERT(condition, "a sentence that says what was promised"): a contract between two parts of
// the program, which only a bug can break. Where assertions are on, a broken one ends the process.
//
// Meson's option `assertions` decides. Where they are off, the condition is compiled and never
// evaluated.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace beeline {

[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* file, int line,
                                                                    const char* condition,
                                                                    const char* promise) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", file, line, condition, promise);
  std::abort();
}

}  // namespace beeline

#ifdef BL_NO_ASSERTIONS
#define BL_ASSERT(condition, promise) static_cast<void>(false && static_cast<bool>(condition))
#else
#define BL_ASSERT(condition, promise) \
  ((condition) ? static_cast<void>(0) \
               : ::beeline::assertion_failed(__FILE__, __LINE__, #condition, "" promise))
#endif
