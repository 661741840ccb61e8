// SPDX-License-Identifier: Apache-2.0
// How a message that arrives gets its receive: from the queue pair's own queue, or from the shared
// one it is attached to. Done by the requester of the peer, in the target's arena.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "softnic/nic/completion_ring.h"

namespace softnic {

class TakenReceive {
 public:
  TakenReceive(Runtime& runtime, const ArenaRef& where, QpRecord& qp, std::uint32_t qpn) noexcept
      : runtime_(runtime), where_(where), qp_(qp), qpn_(qpn) {}

  // The receive for the message that is arriving; all pieces of a message get the same one. Null:
  // none is posted.
  ReceiveRecord* find();

  // The protection domain that its memory has to be of.
  std::uint32_t pd() const noexcept { return qp_.srq != 0 ? where_.arena.srq(qp_.srq).pd : qp_.pd; }

  // Ends it: fills in what the completion says of the receive and pushes it. find() came first.
  void complete(CqeRecord entry);

 private:
  ReceiveRecord* find_shared();
  bool take_shared(SrqRecord& srq);
  void notify_limit(SrqRecord& srq, std::uint64_t left);

  Runtime& runtime_;
  const ArenaRef where_;
  QpRecord& qp_;
  const std::uint32_t qpn_;
};

}  // namespace softnic
