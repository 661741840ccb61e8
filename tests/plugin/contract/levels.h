// SPDX-License-Identifier: Apache-2.0
//
// Counts the descriptors, threads and memory regions of this process, to check that closed comms
// leave none behind.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "tests/plugin/contract/session.h"
#include "tests/plugin/contract/world.h"

namespace beeline::test {

struct Levels {
  std::ptrdiff_t descriptors;
  std::ptrdiff_t threads;
  std::size_t regions;
};

inline Levels levels() {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  };
  return {count("/proc/self/fd"), count("/proc/self/task"), registered_regions()};
}

inline void must_return_to(const Levels& wanted) {
  try {
    wait_until(
        [&] {
          const Levels now = levels();
          return now.descriptors <= wanted.descriptors && now.threads <= wanted.threads &&
                 now.regions <= wanted.regions;
        },
        "descriptors, threads and memory regions");
  } catch (const MustError& error) {
    const Levels now = levels();
    throw MustError(std::string(error.what()) + ": " + std::to_string(now.descriptors) +
                    " descriptors, wanted " + std::to_string(wanted.descriptors) + "; " +
                    std::to_string(now.threads) + " threads, wanted " +
                    std::to_string(wanted.threads) + "; " + std::to_string(now.regions) +
                    " regions, wanted " + std::to_string(wanted.regions));
  }
}

}  // namespace beeline::test
