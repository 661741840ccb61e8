// SPDX-License-Identifier: Apache-2.0
//
// Copies of files of this host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace beeline::bundle {

// At most so many bytes of a file, and of all pages together.
inline constexpr std::size_t kMostBytesOfFile = std::size_t{4} << 20;
inline constexpr std::size_t kMostBytesOfPages = std::size_t{48} << 20;

// Nothing if it is no regular file, or cannot be read.
void copy_file(const std::string& from, const std::string& to);
// What /proc says of the process and of its threads: states and times, no arguments. Of its
// environment only NCCL_ and BEELINE_, without the token of beeline perf.
void copy_process(std::int64_t pid, const std::string& folder);
// The statistics pages in `from`: those with these names, then the newest. Returns how many had no
// room.
std::size_t copy_pages(const std::string& from, const std::set<std::string>& first,
                       const std::string& folder);

// The variables of /proc/PID/environ that a bundle contains.
std::string kept_variables(const std::string& environ);

}  // namespace beeline::bundle
