// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of the program on its command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/gpu/cases.h"
#include "tests/gpu/environment.h"

namespace beeline::gpu {

enum class Task {
  kCheck,     // run the operations
  kProbe,     // only say what this machine has
  kReadLogs,  // only judge the logs of a run of someone else
  kBeRank     // enter the environment of a rank and become another program
};

struct Options {
  Task task = Task::kCheck;
  std::vector<int> ranks{2, 4};
  // LL128 relies on 128 bytes arriving as one, and NCCL allows it only where it knows that they do.
  // softnic's devices are farther away than that, and by force the data may be wrong.
  std::vector<std::string> protos{"Simple", "LL"};
  std::vector<Op> ops = all_ops();
  std::vector<Memory> memories;  // empty: all with a plugin, else the host's
  std::string algo = "Ring";
  std::string net = "Beeline";
  std::string plugin;
  std::string witness;
  std::string log_folder;  // empty: one that is removed when all went well
  std::string rows_file;   // empty: none
  std::size_t most_bytes = std::size_t{64} << 20;
  int rounds = 2;
  std::chrono::seconds limit{120};
  std::vector<std::string> command;  // of kBeRank
};

// Ends the program on --help, and on a mistake with status 2.
Options read_options(int argc, char** argv);

}  // namespace beeline::gpu
