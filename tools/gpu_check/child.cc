// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace beeline::gpu {

Outcome<Child> Child::start(const std::function<void(const ReportSocket&)>& body) {
  std::optional<ReportSocketPair> sockets = make_report_sockets();
  if (!sockets) return fail(fmt::format("no socket pair: {}", std::strerror(errno)));
  std::fflush(nullptr);  // otherwise the child would write the buffer, too
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(fmt::format("no fork: {}", std::strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) body(sockets->child);
    _exit(0);
  }
  return Child(pid, std::move(sockets->parent));
}

Child::~Child() {
  if (socket_.fd() >= 0 && pid_ >= 0) reap(true);
}

std::string Child::end(bool by_force) {
  const int status = reap(by_force);
  if (!WIFSIGNALED(status)) return fmt::format("exited with {}", WEXITSTATUS(status));
  return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

int Child::reap(bool by_force) noexcept {
  if (by_force) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace beeline::gpu
