// SPDX-License-Identifier: Apache-2.0
// The subcommands of `softnic`. Each returns the exit status of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softnic/fabric/fabric.h"

namespace softnic::cli {

// `softnic run`: runs a command on a host of a fabric. The fabric exists as long as the command
// runs.
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

// `softnic ls`: shows fabrics, the state of their ports, and their processes.
int ls(const std::string& name);  // empty: all fabrics of this user

// `softnic ctl`: executes commands to a port or device in order, or none of them if one is wrong.
int ctl(const std::string& name, const std::string& target,
        const std::vector<std::string>& commands);
// `softnic ctl --script`: `file` may be "-" for standard input. Executes nothing if a line is
// wrong.
int ctl_script(const std::string& name, const std::string& file);

// `softnic log`: prints the log of a fabric. With `follow`, continues until the fabric ends.
int log(const std::string& name, bool follow);
// Copies the log to an open file. Returns an errno.
int copy_log(const Fabric& fabric, int to);

// `softnic traffic`: prints how many bytes each port has sent, once, or at intervals of `every` for
// `duration` ("5ms", "3s"). Stops early on SIGINT, SIGTERM or SIGHUP, and when the fabric ends.
struct TrafficOptions {
  std::string name;
  std::string every;  // empty: once
  std::string duration;
};
int traffic(const TrafficOptions& options);

// `softnic chaos`: random faults in a running fabric, reproducible by a seed.
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
