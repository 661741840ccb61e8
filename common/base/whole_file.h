// SPDX-License-Identifier: Apache-2.0
//
// Reads a file that a user has named. It may be anything: a pipe without a writer, a device without
// an end, a file of somebody else. So the size and the wait are limited.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "common/base/problem.h"

namespace beeline {

inline constexpr std::size_t kMostFileBytes = std::size_t{32} << 20;
inline constexpr std::chrono::milliseconds kMostSilence{10'000};
inline constexpr std::chrono::milliseconds kNoLimit{-1};

// `silence` limits the wait for data from a pipe. The error names the file.
Outcome<std::string> read_whole_file(const std::string& path,
                                     std::size_t max_bytes = kMostFileBytes,
                                     std::chrono::milliseconds silence = kMostSilence);

}  // namespace beeline
