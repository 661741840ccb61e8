// SPDX-License-Identifier: Apache-2.0
//
// Starts other programs, and waits for their end with a deadline.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/fd.h"

namespace beeline::test {

struct Command {
  std::vector<std::string> words;                     // words[0]: the program's path
  std::vector<std::string> environment = {};          // "NAME=value", in addition to the caller's
  std::vector<std::pair<int, int>> descriptors = {};  // {number here, number in the child}
};

// How a process ended. `status` is waitpid's.
struct Ending {
  int status = 0;
  bool stuck = false;  // it was killed at the deadline
  std::string said;    // on stderr

  bool was_killed() const noexcept;  // by a SIGKILL of somebody else
  bool is_good() const noexcept;     // exit status 0
};

// A child process. The destructor kills it if it still runs.
class Child {
 public:
  explicit Child(const Command& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const noexcept { return pid_; }
  Ending wait();
  void kill() const noexcept;

 private:
  pid_t pid_;
  UniqueFd process_;  // readable when the process has ended
  UniqueFd errors_;
};

// A socket pair for messages.
std::pair<UniqueFd, UniqueFd> make_line();

}  // namespace beeline::test
