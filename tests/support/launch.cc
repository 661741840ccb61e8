// SPDX-License-Identifier: Apache-2.0
#include "tests/support/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/support/must.h"

namespace beeline::test {
namespace {

// Longer than a worker's own deadlines, so that the worker can report what it waited for.
constexpr int kDeadlineMs = 60'000;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

// The environment of this process, with these variables added or replaced.
std::vector<std::string> merged_environment(const std::vector<std::string>& ours) {
  std::vector<std::string> all = ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string inherited = *entry;
    const std::string name = inherited.substr(0, inherited.find('=') + 1);
    const bool given = std::any_of(ours.begin(), ours.end(), [&](const std::string& variable) {
      return variable.starts_with(name);
    });
    if (!given) all.push_back(inherited);
  }
  return all;
}

// Runs between fork and exec, so it calls only async-signal-safe functions. The old and new numbers
// may overlap, so all descriptors are first moved to high numbers.
void install_descriptors(const std::vector<std::pair<int, int>>& wanted) {
  constexpr int kOutOfTheWay = 100;
  for (const auto& [ours, theirs] : wanted) ::dup3(ours, kOutOfTheWay + theirs, O_CLOEXEC);
  for (const auto& [ours, theirs] : wanted) ::dup2(kOutOfTheWay + theirs, theirs);
}

std::string contents(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while ((got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(part.data(), static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

bool Ending::was_killed() const noexcept {
  return !stuck && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool Ending::is_good() const noexcept {
  return !stuck && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Child::Child(const Command& command) : errors_(::memfd_create("stderr", MFD_CLOEXEC)) {
  std::vector<char*> argv = pointers(command.words);
  const std::vector<std::string> environment = merged_environment(command.environment);
  std::vector<char*> envp = pointers(environment);
  std::vector<std::pair<int, int>> descriptors = command.descriptors;
  descriptors.emplace_back(errors_.get(), STDERR_FILENO);
  pid_ = ::fork();
  BL_MUST(pid_ >= 0);
  if (pid_ == 0) {
    install_descriptors(descriptors);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      process_(std::move(other.process_)),
      errors_(std::move(other.errors_)) {}

Child::~Child() {
  if (pid_ <= 0) return;
  kill();
  ::waitpid(pid_, nullptr, 0);
}

Ending Child::wait() {
  pollfd ended{process_.get(), POLLIN, 0};
  Ending ending;
  ending.stuck = ::poll(&ended, 1, kDeadlineMs) != 1;
  if (ending.stuck) kill();
  BL_MUST(::waitpid(pid_, &ending.status, 0) == pid_);
  pid_ = 0;
  ending.said = contents(errors_.get());
  return ending;
}

void Child::kill() const noexcept { ::kill(pid_, SIGKILL); }

std::pair<UniqueFd, UniqueFd> make_line() {
  std::array<int, 2> ends{};
  BL_MUST(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace beeline::test
