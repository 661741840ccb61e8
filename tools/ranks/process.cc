// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/process.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace beeline::ranks {

Outcome<Process> fork_process(const std::string& who) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(fmt::format("cannot make a socket pair for {}: {}", who, std::strerror(errno)));
  }
  UniqueFd of_parent(ends[0]);
  UniqueFd of_child(ends[1]);
  std::fflush(nullptr);  // otherwise the child would print the buffered output again
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail(
        fmt::format("cannot start a process for {}: {}; raise the limit on processes (ulimit -u)",
                    who, std::strerror(errno)));
  }
  return Process{.stream = LineStream(std::move(pid == 0 ? of_child : of_parent)), .pid = pid};
}

std::string death_of(int status, const char* ended) {
  if (!WIFSIGNALED(status)) return fmt::format("{} with status {}", ended, WEXITSTATUS(status));
  return fmt::format("died of signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

}  // namespace beeline::ranks
