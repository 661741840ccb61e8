// SPDX-License-Identifier: Apache-2.0
//
// Identifies a process by its start time, because its id may be used again after its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace beeline {

// The start time in clock ticks since boot (field 22 of /proc/PID/stat). Empty: there is no such
// process.
std::optional<std::uint64_t> process_start_time(pid_t pid);

}  // namespace beeline
