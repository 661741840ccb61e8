// SPDX-License-Identifier: Apache-2.0
// The parent blocks signals and waits for them with sigwaitinfo, so there are no handlers and no
// races. A signal of the terminal (SI_KERNEL) reaches the command as well, which is in the same
// process group. A signal from a process reaches only the parent and is forwarded.
#include "softnic/cli/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "softnic/cli/common.h"

namespace softnic::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

[[noreturn]] void exec_command(const std::vector<std::string>& command) {
  std::vector<char*> argv(command.size() + 1, nullptr);
  for (std::size_t i = 0; i < command.size(); ++i) argv[i] = const_cast<char*>(command[i].c_str());
  ::execvp(argv[0], argv.data());
  const int cause = errno;
  const bool searched = command[0].find('/') == std::string::npos;
  report_error(
      fmt::format("cannot run {}: {}", command[0],
                  cause == ENOENT && searched ? "no such command in PATH" : std::strerror(cause)));
  ::_exit(cause == ENOENT ? 127 : 126);
}

std::optional<int> ended(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return 128 + WTERMSIG(status);
}

int wait_and_forward(pid_t child, const sigset_t& signals) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (const std::optional<int> status = ended(child)) return *status;
    const bool from_process = info.si_code <= 0;
    if (signal > 0 && signal != SIGCHLD && from_process) ::kill(child, signal);
  }
}

}  // namespace

int run_child(const std::vector<std::string>& command, const std::function<void()>& prepare) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&signals, signal);
  ::signal(SIGCHLD, SIG_DFL);  // if it is inherited as ignored, waitpid() finds no child
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    prepare();
    exec_command(command);
  }
  if (child < 0) return report_error(fmt::format("cannot fork: {}", std::strerror(errno)));
  return wait_and_forward(child, signals);
}

}  // namespace softnic::cli
