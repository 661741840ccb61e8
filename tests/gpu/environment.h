// SPDX-License-Identifier: Apache-2.0
//
// What NCCL is told through the environment, so that ranks on one GPU take one another for machines
// of their own and have nothing but the network between them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace beeline::gpu {

// What the network is given to send from and to write into.
enum class Memory {
  kHost,       // NCCL copies through host memory
  kGpu,        // GPUDirect: pointers into the GPU
  kGpuFlushed  // the same, and NCCL asks for a flush after each receive
};
// "host", "gpudirect", "gpudirect+flush": on the command line and in the tables.
const char* to_string(Memory memory) noexcept;

// What differs from run to run. NCCL reads it once per process, so each run has its own processes.
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

// The same for all runs; each run's; and the part that is each rank's own.
Variables common_variables(const RunSettings& settings);
Variables run_variables(const RunSettings& settings);
Variables rank_variables(const RunSettings& settings, int rank);

// In the process of a rank, before it loads anything. Hosts of softnic are taken in turn.
void enter_environment(const RunSettings& settings, int rank);

// NCCL_* and BEELINE_* that someone else set and that stay in force: they belong to the result.
Variables inherited_variables(const RunSettings& settings);

std::string log_file(const RunSettings& settings, int rank);
// What the witness of that rank counted.
std::string calls_file(const RunSettings& settings, int rank);

}  // namespace beeline::gpu
