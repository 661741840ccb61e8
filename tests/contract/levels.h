// SPDX-License-Identifier: Apache-2.0
//
// Counts the descriptors and threads of this process, to check that closed comms leave none behind.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "tests/contract/session.h"

namespace beeline::test {

struct Levels {
  std::ptrdiff_t descriptors;
  std::ptrdiff_t threads;
};

inline Levels levels() {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  };
  return {count("/proc/self/fd"), count("/proc/self/task")};
}

inline void must_return_to(const Levels& wanted) {
  try {
    wait_until(
        [&] {
          const Levels now = levels();
          return now.descriptors <= wanted.descriptors && now.threads <= wanted.threads;
        },
        "descriptors and threads");
  } catch (const MustError& error) {
    const Levels now = levels();
    throw MustError(std::string(error.what()) + ": " + std::to_string(now.descriptors) +
                    " descriptors, wanted " + std::to_string(wanted.descriptors) + "; " +
                    std::to_string(now.threads) + " threads, wanted " +
                    std::to_string(wanted.threads));
  }
}

}  // namespace beeline::test
