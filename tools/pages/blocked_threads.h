// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait in the kernel and take no signal, as for storage that does not answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace beeline::pages {

// How many threads of each process were in state D at two moments. A thread is in that state for a
// moment now and then.
std::vector<std::size_t> count_blocked_threads(const std::vector<std::int64_t>& pids);

}  // namespace beeline::pages
