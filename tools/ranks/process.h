// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "tools/ranks/line_stream.h"

namespace beeline::ranks {

// Another process, and the connection to it.
struct Process {
  LineStream stream;
  pid_t pid = 0;  // 0 if it is not a child of this process
};

// Returns in both processes: to the parent its child, to the child its parent. `who` is the child,
// for errors.
Outcome<Process> fork_process(const std::string& who);

// "died of signal 9 (Killed)", or else `ended` and the exit status. `status` is that of waitpid().
std::string death_of(int status, const char* ended);

}  // namespace beeline::ranks
