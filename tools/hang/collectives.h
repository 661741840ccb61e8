// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a communicator have called other collectives than the others, by the numbers that
// NCCL's RAS gives.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/pages/processes.h"

namespace beeline::hang {

struct CalledRank {
  std::uint32_t rank = 0;  // in the communicator
  std::string host;        // as NCCL names it: an address
  std::int64_t pid = 0;
  std::map<std::string, std::uint64_t> counts = {};  // "AllReduce": how many were called
};

struct Communicator {
  std::string hash;
  std::vector<CalledRank> ranks;           // those that have answered
  std::vector<std::uint32_t> silent = {};  // those that have not
};

// From the answer of ask_ras(). Texts from it are made printable.
Outcome<std::vector<Communicator>> communicators_in(const std::string& answer);

// Whether any of them is one of these processes.
bool is_of(std::span<const Communicator> communicators, std::span<const pages::Process> processes);

// Sentences. Of two looks, only what both have is not a matter of the moment.
std::set<std::string> what_differs(std::span<const Communicator> communicators);

}  // namespace beeline::hang
