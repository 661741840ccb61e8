// SPDX-License-Identifier: Apache-2.0
//
// Catch2 cannot skip a test case: one that returns counts as passed.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace beeline::test {

// For a case that meson runs in a process of its own: meson counts the test as skipped.
[[noreturn]] inline void skip_program(const char* why) {
  std::printf("skipped: %s\n", why);
  std::exit(77);
}

}  // namespace beeline::test
