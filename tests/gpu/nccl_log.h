// SPDX-License-Identifier: Apache-2.0
//
// What NCCL said in its log: which network it took, through which version of the plugin interface,
// from which memory, and what worried it. The phrases are those of NCCL 2.13 to 2.30.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/environment.h"

namespace beeline::gpu {

struct NcclLog {
  bool exists = false;
  std::string version;             // "2.28.9"; only the first rank says it
  std::string plugin;              // "Beeline (v11)"; empty: NCCL loaded none
  std::set<std::string> networks;  // all that some communicator uses
  std::set<std::string> protos;    // all that some all-reduce was given; older NCCL says none
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
// What the log shows, or does not show, that it should; nothing when all is well.
std::optional<std::string> find_fault(const NcclLog& log, const Expected& expected);

}  // namespace beeline::gpu
