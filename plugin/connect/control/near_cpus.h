// SPDX-License-Identifier: Apache-2.0
//
// Places the control thread on processors near the NICs, as far as the process may use them.
#pragma once

#include <sched.h>

#include <optional>
#include <string_view>

namespace beeline {

// The processors of a list ("0-31,64-95") that are allowed. Empty if none is, or the list is
// malformed.
std::optional<cpu_set_t> allowed_cpus(std::string_view list, const cpu_set_t& allowed) noexcept;

// Restricts the calling thread to these processors, as far as they are allowed. If none is, or the
// kernel refuses, nothing changes.
void run_near(std::string_view list) noexcept;

}  // namespace beeline
