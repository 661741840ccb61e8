// SPDX-License-Identifier: Apache-2.0
//
// Where ranks on several machines meet, as --rendezvous names it: HOST:PORT, or a file in which
// rank 0 leaves its address and a token. Only its owner can read the file, so a client that knows
// the token is one of the ranks. At HOST:PORT there is no token.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "tools/cli/exit_status.h"

namespace beeline::perf {

// Whether it can be one.
Outcome<bool> check_rendezvous(const std::string& rendezvous);

// Rank 0's side. It listens at one address as long as this object exists, and then removes the
// file, unless a later run has written its own there.
class Door {
 public:
  static Outcome<Door> open(const std::string& rendezvous);
  Door(Door&& other) noexcept;
  Door& operator=(Door&&) = delete;
  ~Door();

  int fd() const noexcept { return listener_.get(); }
  // Empty: there is none.
  const std::string& token() const noexcept { return token_; }

 private:
  explicit Door(UniqueFd listener) : listener_(std::move(listener)) {}

  UniqueFd listener_;
  std::string token_;
  std::string file_;  // that is there
};

// Any other rank's side.
struct Doorstep {
  UniqueFd line;
  std::string token;
};

// Makes one attempt, which ends at the deadline at the latest.
Outcome<Doorstep> dial(const std::string& rendezvous, std::int64_t deadline_ns);

}  // namespace beeline::perf
