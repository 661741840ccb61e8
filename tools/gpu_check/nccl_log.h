// SPDX-License-Identifier: Apache-2.0
//
// Reads NCCL's log: the network that it used, the version of the plugin interface, the memory, and
// warnings. The phrases are those of NCCL 2.13 to 2.30.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/gpu_check/environment.h"

namespace beeline::gpu {

struct NcclLog {
  bool exists = false;
  std::string version;             // "2.28.9"; only the first rank logs it
  std::string plugin;              // "Beeline (v11)"; empty: NCCL loaded none
  std::set<std::string> networks;  // of all communicators
  std::set<std::string> protos;    // of all all-reduces; older NCCL logs none
  int paths = 0;                   // connections over the network
  int direct_paths = 0;            // those of them with GPUDirect
  std::vector<std::string> warnings;
};

NcclLog read_nccl_log(const std::string& file);

struct Expected {
  std::string net;
  bool by_plugin;
  std::string proto;  // empty: any
  Memory memory;
};
// Returns a difference between the log and the expectation, or nothing.
std::optional<std::string> find_fault(const NcclLog& log, const Expected& expected);

}  // namespace beeline::gpu
