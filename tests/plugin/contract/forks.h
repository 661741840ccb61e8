// SPDX-License-Identifier: Apache-2.0
//
// Children of a process that uses the plugin, which leave again.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "tests/plugin/contract/world.h"

namespace beeline::test {

enum class Leave { kExit, kQuickly };

// The leak checker of a sanitizer changes the exit status of a child.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kStatusCounts = false;
#else
inline constexpr bool kStatusCounts = true;
#endif

inline void must_end(pid_t child) {
  const int status = wait_for_exit(child);
  BL_MUST(!kStatusCounts || status == 0);
}

inline void fork_and_leave(Leave leave) {
  const pid_t child = fork();
  BL_MUST(child >= 0);
  if (child == 0) {
    if (leave == Leave::kExit) std::exit(0);
    _exit(0);
  }
  must_end(child);
}

}  // namespace beeline::test
