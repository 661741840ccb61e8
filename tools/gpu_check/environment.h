// SPDX-License-Identifier: Apache-2.0
//
// The environment variables that make NCCL treat ranks on one GPU as separate machines, which are
// connected only by the network.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace beeline::gpu {

// The memory from which the network sends and to which it writes.
enum class Memory {
  kHost,       // NCCL copies through host memory
  kGpu,        // GPUDirect: pointers into the GPU
  kGpuFlushed  // the same, and NCCL asks for a flush after each receive
};
// "host", "gpudirect", "gpudirect+flush": on the command line and in the tables.
const char* to_string(Memory memory) noexcept;

// The settings of a run. NCCL reads the environment once per process, so each run has new
// processes.
struct RunSettings {
  std::string plugin;   // the file; empty: NCCL's own network
  std::string witness;  // the library that counts its calls; empty: none
  std::string net;      // the network that must be used, by name
  std::string algo;     // empty: NCCL chooses
  std::string proto;    // empty: NCCL chooses
  Memory memory;
  std::string log_folder;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// The variables of all runs, of one run, and of one rank.
Variables common_variables(const RunSettings& settings);
Variables run_variables(const RunSettings& settings);
Variables rank_variables(const RunSettings& settings, int rank);

// Called in the process of a rank before it loads any library. Ranks use the softnic hosts in turn.
void enter_environment(const RunSettings& settings, int rank);

// Variables NCCL_* and BEELINE_* that the caller has set and that stay in effect. They are printed
// with the results.
Variables inherited_variables(const RunSettings& settings);

std::string log_file(const RunSettings& settings, int rank);
// The file with the counts of the rank's witness.
std::string calls_file(const RunSettings& settings, int rank);

}  // namespace beeline::gpu
