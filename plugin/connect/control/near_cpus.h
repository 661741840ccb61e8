// SPDX-License-Identifier: Apache-2.0
//
// Where the control thread runs: near to the NICs, and nowhere that the process may not.
#pragma once

#include <sched.h>

#include <optional>
#include <string_view>

namespace beeline {

// What of a list of processors ("0-31,64-95") is allowed. Nothing when that is none, or the list
// makes no sense.
std::optional<cpu_set_t> allowed_cpus(std::string_view list, const cpu_set_t& allowed) noexcept;

// The calling thread runs on these from now on, as far as it may. Where it may not at all, or the
// kernel refuses, it stays as free as it was.
void run_near(std::string_view list) noexcept;

}  // namespace beeline
