// SPDX-License-Identifier: Apache-2.0
//
// Removes the statistics pages of dead processes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace beeline {

// A process is identified by its start time, because its id may be used again after its end: the
// start time in clock ticks since boot (field 22 of /proc/PID/stat). Empty: there is no such
// process.
std::optional<std::uint64_t> process_start_time(pid_t pid);

// The owner of a page, as its file name says.
struct PageOwner {
  std::int64_t pid;
  std::uint64_t start_time;
};
std::string page_file_name(const PageOwner& owner);
std::optional<PageOwner> parse_page_file_name(std::string_view name);

// A dead process's page may show why it died, so it is kept for a while.
inline constexpr std::int64_t kDeadPageLifetimeNs = 3600 * kNsPerSec;

// A sweep keeps at most this many dead pages, and this much memory of them: the newest of those
// that it has examined. Containers often have only 64 MiB in /dev/shm, which running jobs need.
inline constexpr std::size_t kMaxDeadPages = 64;
inline constexpr std::size_t kMaxDeadBytes = std::size_t{16} << 20;
// A sweep examines at most this many dead pages, so that init stays fast. Later sweeps examine the
// rest.
inline constexpr std::size_t kMaxPagesPerSweep = 200;

// The first sweep that finds a page's owner dead stamps the file: it makes the file read-only and
// sets its time to now. A sweep that finds a stamp of at least `kept_ns` ago removes the file, and
// one that finds the page of a process that has had no connection removes it at once. It
// changes only regular files of this user with such a name and the magic number, and only if they
// are not locked. Errors are ignored, because the next sweep tries again. Returns how many of the
// examined pages stay.
std::size_t sweep_dead_pages(const std::string& directory,
                             std::int64_t kept_ns = kDeadPageLifetimeNs);

}  // namespace beeline
