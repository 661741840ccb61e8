// SPDX-License-Identifier: Apache-2.0
//
// The connections to rank 0 until every rank has connected, of `beeline perf` and of `beeline
// doctor`. Rank 0 proves to each client that it knows the token, and the client has to prove the
// same. Any other client is refused, or stays connected without effect; rank 0 never waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "tools/ranks/hello.h"
#include "tools/ranks/line_stream.h"
#include "tools/ranks/rendezvous_socket.h"
#include "tools/ranks/token_proof.h"

namespace beeline::ranks {

struct Expected {
  std::string command;  // of the proofs
  std::string rendezvous;
  int ranks = 2;
  int timeout_seconds = 60;
  // Whether a rank fits to this one. An error ends the gathering.
  std::function<Outcome<void>(const Hello&)> check = [](const Hello&) { return Outcome<void>(); };
};

struct Joined {
  LineStream stream;
  std::string about = {};  // of its Hello
};

class Admission {
 public:
  Admission(Expected expected, RendezvousListener listener);

  // Waits for all other ranks. The result is indexed by rank; entry 0 is empty.
  Outcome<std::vector<Joined>> gather();

 private:
  struct Client {
    LineStream stream;
    std::string from = {};   // its address
    Exchange exchange = {};  // no challenges before it has sent its own
  };
  using Clients = std::list<Client>;

  Outcome<void> wait_once(std::int64_t deadline);
  Outcome<void> accept_client();
  Outcome<void> read_line(Clients::iterator client);
  Outcome<bool> prove(Client& client, const std::string& challenge);
  std::optional<Hello> proven_hello(const Client& client, const std::string& line) const;
  Outcome<void> admit(Clients::iterator client, const Hello& hello);
  void refuse(Clients::iterator client);

  const Expected expected_;
  RendezvousListener listener_;
  Clients clients_;  // the oldest first
  std::vector<Joined> ranks_;
  size_t missing_;
  int refused_ = 0;
};

}  // namespace beeline::ranks
