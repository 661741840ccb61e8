// SPDX-License-Identifier: Apache-2.0
//
// What is fuzzed: one target for each decoder. A target is a plain function of bytes, so that
// libFuzzer can drive it, and so can a program that any compiler builds.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace beeline::fuzz {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

struct Target {
  const char* name;
  // True: the decoder took it for good. Ends the process when it should not have, or when what it
  // made of the bytes does not hold.
  bool (*take)(ByteView bytes);
  // What our own encoders write. Each must be taken.
  std::vector<Bytes> (*seeds)();
};

// Of this program: the sources that it is made of define it once.
std::vector<Target> all_targets();
// Null: there is none of that name.
const Target* find_target(std::string_view name);

// Not an assertion: it holds in every build.
inline void hold(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace beeline::fuzz
