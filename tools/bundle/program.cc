// SPDX-License-Identifier: Apache-2.0
#include "tools/bundle/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/fd.h"

namespace beeline::bundle {
namespace {

UniqueFd create(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

// Readable when the process ends. Empty on a kernel before 5.3: then it has all the time it wants.
UniqueFd end_of(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

class FileActions {
 public:
  FileActions(int out, int error) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, error, 2);
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

std::string run_program(const std::vector<std::string>& words, const std::string& output,
                        std::chrono::seconds time) {
  const std::string errors = output + ".err";
  const UniqueFd out = create(output);
  const UniqueFd error = create(errors);
  if (!out || !error) return std::string("its output cannot be kept: ") + std::strerror(errno);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const FileActions actions(out.get(), error.get());
  const int failed = ::posix_spawnp(&pid, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (failed != 0) {
    ::unlink(output.c_str());
    ::unlink(errors.c_str());
    return failed == ENOENT ? "not there" : std::strerror(failed);
  }
  const UniqueFd end = end_of(pid);
  pollfd wait = {.fd = end.get(), .events = POLLIN, .revents = 0};
  const bool is_late =
      end && ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(time).count())) == 0;
  if (is_late) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  struct stat said {};
  if (::stat(errors.c_str(), &said) == 0 && said.st_size == 0) ::unlink(errors.c_str());
  if (is_late) return fmt::format("killed after {} s", time.count());
  if (WIFSIGNALED(status)) return fmt::format("died of signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

}  // namespace beeline::bundle
