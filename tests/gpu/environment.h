// SPDX-License-Identifier: Apache-2.0
//
// What NCCL is told through the environment, so that ranks on one GPU take one another for machines
// of their own and have nothing but the network between them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace beeline::gpu {

// What differs from run to run. NCCL reads it once per process, so each run has its own processes.
struct RunSettings {
  std::string plugin;  // the file; empty: NCCL's own network
  std::string net;     // the network that must be used, by name
  std::string algo;
  std::string proto;
  std::string log_folder;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// The same for all ranks, and the part that is each rank's own.
Variables common_variables(const RunSettings& settings);
Variables rank_variables(const RunSettings& settings, int rank);

// In the process of a rank, before it loads anything. Hosts of softnic are taken in turn.
void enter_environment(const RunSettings& settings, int rank);

// NCCL_* and BEELINE_* that someone else set and that stay in force: they belong to the result.
Variables inherited_variables(const RunSettings& settings);

std::string log_file(const RunSettings& settings, int rank);

}  // namespace beeline::gpu
