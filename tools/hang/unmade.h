// SPDX-License-Identifier: Apache-2.0
//
// Why connections are not made: a connect() has failed and was not repeated, or ranks are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::hang {

// Whether another connection in the same direction was made since: then the process goes on without
// the failed one.
bool was_replaced(const SlotView& failed, const pages::Process& process);

// The newest failed connection of the process, by its place in Process::failed. None if it was
// replaced.
std::optional<std::size_t> last_failure(const pages::Process& process);

// Whether a connect() of the process to the one of this identity is among what has failed since.
bool has_failed_to_reach(const pages::Process& process, std::uint64_t identity);

// Whether the process has any connection that is made, at either end.
bool has_connections(const pages::Process& process);

// The ranks of a job that no running process here has, as ranges. Empty if the launcher of this
// process has told no number of ranks.
using RankRange = std::pair<std::uint32_t, std::uint32_t>;  // first and last
std::vector<RankRange> missing_ranks(std::span<const pages::Process> processes,
                                     const pages::Process& member);

}  // namespace beeline::hang
