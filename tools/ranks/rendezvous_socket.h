// SPDX-License-Identifier: Apache-2.0
//
// How ranks on several machines find rank 0 (perf --rendezvous, doctor --cluster): at HOST:PORT, or
// by a file into which rank 0 writes its address and a token. Only the user of rank 0 can read the
// file, so who knows the token is one of the ranks. At HOST:PORT the token is in the environment of
// all ranks (kRendezvousTokenVariable).
#pragma once

#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "common/base/problem.h"
#include "common/base/rendezvous_token.h"

namespace beeline::ranks {

// Checks the form of the argument, and with HOST:PORT that there is a token.
Outcome<bool> check_rendezvous(const std::string& rendezvous);

// The address that the proofs of the token cover (token_proof.h).
std::string proven_address(const std::string& rendezvous);

// Rank 0's side. It listens at one address as long as this object exists. The destructor removes
// the file, unless a later run has replaced it.
class RendezvousListener {
 public:
  static Outcome<RendezvousListener> open(const std::string& rendezvous);
  RendezvousListener(RendezvousListener&& other) noexcept;
  RendezvousListener& operator=(RendezvousListener&&) = delete;
  ~RendezvousListener();

  int fd() const noexcept { return listener_.get(); }
  const std::string& token() const noexcept { return token_; }

 private:
  RendezvousListener(UniqueFd listener, std::string token)
      : listener_(std::move(listener)), token_(std::move(token)) {}

  UniqueFd listener_;
  std::string token_;
  std::string file_;  // that is there
};

// The side of all other ranks.
struct RendezvousConnection {
  UniqueFd fd;
  std::string token;
  std::string where;  // HOST:PORT
  bool is_from_file = false;
};

// Makes one attempt, which ends at the deadline at the latest. A later one may succeed, unless the
// error is kDenied.
Outcome<RendezvousConnection> dial(const std::string& rendezvous, std::int64_t deadline_ns);

}  // namespace beeline::ranks
