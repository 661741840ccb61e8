// SPDX-License-Identifier: Apache-2.0
// Takes a receive for an arriving message, from the queue pair's own receive queue or from its
// shared one. The requester of the peer does this, in the target's arena.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "softnic/nic/completion_ring.h"

namespace softnic {

class TakenReceive {
 public:
  TakenReceive(Runtime& runtime, const ArenaRef& where, QpRecord& qp, std::uint32_t qpn) noexcept
      : runtime_(runtime), where_(where), qp_(qp), qpn_(qpn) {}

  // The receive for the arriving message, the same for all its pieces. Null if none is posted.
  ReceiveRecord* find();

  // The protection domain to which its memory must belong.
  std::uint32_t pd() const noexcept { return qp_.srq != 0 ? where_.arena.srq(qp_.srq).pd : qp_.pd; }

  // Adds the receive's fields to the completion and pushes it. find() has returned the receive
  // before.
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
