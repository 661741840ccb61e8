// SPDX-License-Identifier: Apache-2.0
//
// The command line of the program.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tools/gpu_check/cases.h"
#include "tools/gpu_check/environment.h"

namespace beeline::gpu {

enum class Task {
  kCheck,     // run the operations
  kProbe,     // only print what this machine has
  kReadLogs,  // only check the logs of another program's run
  kBeRank     // set the environment of a rank and exec another program
};

struct Options {
  Task task = Task::kCheck;
  std::vector<int> ranks{2, 4};
  // LL128 relies on 128 bytes arriving at once, and NCCL allows it only where that is known to
  // hold. softnic's devices are too far from the GPU for that, so with LL128 the data may be wrong.
  std::vector<std::string> protos{"Simple", "LL"};
  std::vector<Op> ops = all_ops();
  std::vector<Memory> memories;  // empty: all with a plugin, otherwise host memory
  std::string algo = "Ring";
  std::string net = "Beeline";
  std::string plugin;
  std::string witness;
  std::string log_folder;  // empty: a temporary one, which is removed if all was right
  std::string rows_file;   // empty: none
  std::size_t most_bytes = std::size_t{64} << 20;
  int rounds = 2;
  std::chrono::seconds limit{120};
  std::vector<std::string> command;  // of kBeRank
};

// Exits on --help, and with status 2 on an invalid option.
Options read_options(int argc, char** argv);

}  // namespace beeline::gpu
