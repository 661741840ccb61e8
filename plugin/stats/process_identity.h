// SPDX-License-Identifier: Apache-2.0
//
// Who a process is, beyond a number that is used again after its death.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace beeline {

// When it started, in ticks since boot (field 22 of /proc/PID/stat). None: there is no such
// process.
std::optional<std::uint64_t> process_start_time(pid_t pid);

}  // namespace beeline
