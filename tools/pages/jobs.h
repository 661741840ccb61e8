// SPDX-License-Identifier: Apache-2.0
//
// Which processes belong to one job.
#pragma once

#include <string>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::pages {

struct Job {
  std::string name = {};  // as its processes say; empty: they say nothing
  std::vector<Process> processes = {};

  bool runs() const noexcept;  // at least one process
};

// Those that say the same name. What says none belongs to those that it has connections with; a
// rank without connections belongs to where such a rank is missing.
std::vector<Job> jobs_of(std::vector<Process> processes);

}  // namespace beeline::pages
