// SPDX-License-Identifier: Apache-2.0
//
// The fuzz targets, one for each decoder. A target is a plain function of bytes, so that libFuzzer
// can call it, and so can a program that any compiler builds.
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
  // Decodes the bytes and returns whether they were accepted. Aborts the process if they must not
  // have been, or if the result does not have a promised property.
  bool (*take)(ByteView bytes);
  // Data of this project's encoders. Each must be accepted.
  std::vector<Bytes> (*seeds)();
};

// All targets of this program, which defines this function once.
std::vector<Target> all_targets();
// Returns null if there is none of that name.
const Target* find_target(std::string_view name);

// Like an assertion, but checked in every build.
inline void hold(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace beeline::fuzz
