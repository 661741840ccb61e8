// SPDX-License-Identifier: Apache-2.0
// `softnic chaos`: random disturbances of a running fabric, by a seed.
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
  std::string kinds;               // "down,loss"; empty: all that programs are expected to survive
  std::vector<std::string> spare;  // ports, as find_port takes them
  bool plan_only = false;          // print the plan as a script
};

// Leaves the fabric undisturbed at its end, and when SIGINT, SIGTERM or SIGHUP stops it.
int chaos(const ChaosOptions& options);

}  // namespace softnic::cli
