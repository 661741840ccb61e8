// SPDX-License-Identifier: Apache-2.0
// `softnic run`: a command on a host of a fabric. The fabric lives as long as the command.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

struct RunOptions {
  std::string name;
  std::string fabric_file;
  std::string host;
  std::string log_file;  // gets the fabric's log at the end; empty: none does
  bool softgpu = false;  // a CUDA driver too (docs/softgpu.md)
  std::vector<std::string> command;
};

// The exit status of the command as a shell has it, or that of our own failure.
int run(const RunOptions& options);

}  // namespace softnic::cli
