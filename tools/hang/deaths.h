// SPDX-License-Identifier: Apache-2.0
//
// Processes that have ended while others were connected to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::hang {

// The witness may have died since, as a consequence.
struct Death {
  std::optional<std::size_t> process;  // that has ended; none: it has no page here
  std::size_t witness = 0;             // the process that has noticed it
  std::size_t failed = 0;              // on which connection, in Process::failed of the witness
  std::size_t survivor = 0;            // the process from which the failures lead to this one
};

// Those that began what the processes that run have noticed, and not recovered from. If none runs,
// what those that have ended had noticed.
std::vector<Death> find_deaths(std::span<const pages::Process> processes);

// When the witness noticed it, by the clock of its host.
std::uint64_t noticed_at_ns(const Death& death, std::span<const pages::Process> processes);

}  // namespace beeline::hang
