// SPDX-License-Identifier: Apache-2.0
//
// Starts the doctors of other hosts, and connects to them.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/peers/coordinator.h"

namespace beeline::doctor {

inline constexpr const char* kDefaultLaunch = "ssh -o BatchMode=yes -o ConnectTimeout=20 {host}";

// The names in a file of hosts, as mpirun reads it: one on each line, perhaps with more behind it.
Outcome<std::vector<std::string>> read_hostfile(const std::string& path);

// Runs `beeline doctor --serve` on each host, with the shell command `command` in front of it, in
// which {host} is the name of the host. A host with an empty name is this one: no command is put in
// front. The other hosts get this process's variables NCCL_* and BEELINE_* by `env` in the command.
// The messages travel over the standard input and output.
Outcome<std::vector<Peer>> launch(const std::vector<std::string>& hosts,
                                  const std::string& command);

}  // namespace beeline::doctor
