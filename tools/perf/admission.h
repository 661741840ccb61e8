// SPDX-License-Identifier: Apache-2.0
//
// The connections to rank 0 until every rank has connected. Any other client is refused, or stays
// connected without effect; rank 0 never waits for it.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "tools/perf/coordinator.h"
#include "tools/perf/rendezvous_socket.h"

namespace beeline::perf {

class Admission {
 public:
  Admission(const Options& options, RendezvousListener listener);

  // Waits for all other ranks, for at most --timeout. The result is indexed by rank; entry 0 is
  // empty.
  Outcome<std::vector<Member>> gather();

 private:
  struct Client {
    FrameSocket socket;
    std::string from = {};  // its address
  };
  using Clients = std::list<Client>;

  Outcome<bool> wait_once(std::int64_t deadline);
  Outcome<bool> accept_client();
  Outcome<bool> read_hello(Clients::iterator client);
  Outcome<bool> admit(Clients::iterator client, const Hello& hello);
  void refuse(Clients::iterator client);

  const Options& options_;
  RendezvousListener listener_;
  Clients clients_;  // the oldest first
  std::vector<Member> members_;
  size_t missing_;
  int refused_ = 0;
};

}  // namespace beeline::perf
