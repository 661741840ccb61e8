// SPDX-License-Identifier: Apache-2.0
//
// The argument of --rendezvous, by which ranks on several machines find rank 0: HOST:PORT, or a
// file into which rank 0 writes its address and a token. Only its owner can read the file, so a
// client that knows the token is one of the ranks. At HOST:PORT there is no token.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "tools/cli/exit_status.h"

namespace beeline::perf {

// Checks the argument of --rendezvous.
Outcome<bool> check_rendezvous(const std::string& rendezvous);

// Rank 0's side. It listens at one address as long as this object exists. The destructor removes
// the file, unless a later run has replaced it.
class RendezvousListener {
 public:
  static Outcome<RendezvousListener> open(const std::string& rendezvous);
  RendezvousListener(RendezvousListener&& other) noexcept;
  RendezvousListener& operator=(RendezvousListener&&) = delete;
  ~RendezvousListener();

  int fd() const noexcept { return listener_.get(); }
  // Empty if there is none.
  const std::string& token() const noexcept { return token_; }

 private:
  explicit RendezvousListener(UniqueFd listener) : listener_(std::move(listener)) {}

  UniqueFd listener_;
  std::string token_;
  std::string file_;  // that is there
};

// The side of all other ranks.
struct RendezvousConnection {
  UniqueFd fd;
  std::string token;
};

// Makes one attempt, which ends at the deadline at the latest.
Outcome<RendezvousConnection> dial(const std::string& rendezvous, std::int64_t deadline_ns);

}  // namespace beeline::perf
