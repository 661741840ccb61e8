// SPDX-License-Identifier: Apache-2.0
// `softnic chaos`: random faults in a running fabric, reproducible by a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace softnic::cli {

struct ChaosOptions {
  std::string name;
  std::uint64_t seed = 1;
  std::string duration;
  std::string every = "100ms";
  std::string kinds;               // "down,loss"; empty: all but "corrupt"
  std::vector<std::string> spare;  // ports, as find_port takes them
  bool plan_only = false;          // print the plan as a script
};

// Resets all ports when it ends or is stopped by SIGINT, SIGTERM or SIGHUP.
int chaos(const ChaosOptions& options);

}  // namespace softnic::cli
