// SPDX-License-Identifier: Apache-2.0
// `softnic run`: runs a command on a host of a fabric. The fabric exists as long as the command
// runs.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

struct RunOptions {
  std::string name;
  std::string fabric_file;
  std::string host;
  std::string log_file;  // where to copy the fabric's log at the end; empty: nowhere
  bool softgpu = false;  // also provide softgpu as the CUDA driver (docs/softgpu.md)
  std::vector<std::string> command;
};

// Returns the exit status of the command as a shell reports it, or kFailed or kUsage.
int run(const RunOptions& options);

}  // namespace softnic::cli
