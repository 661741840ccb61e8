// SPDX-License-Identifier: Apache-2.0
//
// What can be asked of the program on its command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace beeline::gpu {

struct Options {
  std::vector<int> ranks{2, 4};
  std::vector<std::string> protos{"Simple", "LL", "LL128"};
  std::string algo = "Ring";
  std::string net = "Beeline";
  std::string plugin;
  std::string log_folder;  // empty: one that is removed when all went well
  std::size_t most_bytes = std::size_t{64} << 20;
  int rounds = 2;
  std::chrono::seconds limit{120};
  bool only_probe = false;
};

// Ends the program on --help, and on a mistake with status 2.
Options read_options(int argc, char** argv);

}  // namespace beeline::gpu
