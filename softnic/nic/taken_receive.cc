// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/taken_receive.h"

#include "softnic/fabric/events.h"

namespace softnic {

ReceiveRecord* TakenReceive::find() {
  if (qp_.srq != 0) return find_shared();
  const std::uint64_t taken = qp_.receives_taken.load();
  return qp_.receives_posted.load() > taken ? &where_.arena.receive(qp_, taken) : nullptr;
}

ReceiveRecord* TakenReceive::find_shared() {
  SrqRecord& srq = where_.arena.srq(qp_.srq);
  if (qp_.shared_receive.load() == 0 && !take_shared(srq)) return nullptr;
  return &where_.arena.slot(srq, qp_.shared_receive.load() - 1).receive;
}

bool TakenReceive::take_shared(SrqRecord& srq) {
  runtime_.take(srq.take_lock);
  std::uint64_t at = srq.taken.load(std::memory_order_relaxed);
  const std::uint64_t posted = srq.posted.load();
  // Skips slots of processes that died between taking the slot and advancing `taken`.
  while (at != posted &&
         where_.arena.slot(srq, where_.arena.fifo(srq, at).load()).holder.load() != kSlotPosted) {
    srq.taken.store(++at);
  }
  const bool found = at != posted;
  if (found) {
    const std::uint32_t number = where_.arena.fifo(srq, at).load();
    where_.arena.slot(srq, number).holder.store(qpn_);
    srq.taken.store(at + 1);
    qp_.shared_receive.store(number + 1);
  }
  // Also if the queue is empty: the process that took the last receive may have died before it did
  // it.
  notify_limit(srq, found ? posted - at - 1 : 0);
  srq.take_lock.unlock();
  return found;
}

// Called under the lock, so kLimitNotifying is found only if the process that set it has died.
void TakenReceive::notify_limit(SrqRecord& srq, std::uint64_t left) {
  std::uint32_t limit = srq.limit.load();
  do {
    if (left >= (limit & ~kLimitNotifying)) return;
  } while (!srq.limit.compare_exchange(limit, limit | kLimitNotifying));
  const bool sent =
      send_event(runtime_.fabric(), EventPipe{srq.device, where_.slot, srq.event_number},
                 EventRecord{IBV_EVENT_SRQ_LIMIT_REACHED, 0, srq.serial});
  if (!sent) return;  // the next message tries again
  limit |= kLimitNotifying;
  (void)srq.limit.compare_exchange(limit, 0);  // unless the owner has armed it again
}

void TakenReceive::complete(CqeRecord entry) {
  if (qp_.srq != 0) {
    const std::uint32_t slot = qp_.shared_receive.load() - 1;
    entry.kind = CqeKind::kShared;
    entry.sequence = slot;
    entry.wr_id = where_.arena.slot(where_.arena.srq(qp_.srq), slot).receive.wr_id;
    push_completion(runtime_, where_, qp_.recv_cq, entry);
    qp_.shared_receive.store(0);
    return;
  }
  const std::uint64_t taken = qp_.receives_taken.load();
  entry.kind = CqeKind::kReceive;
  entry.sequence = taken;
  entry.wr_id = where_.arena.receive(qp_, taken).wr_id;
  push_completion(runtime_, where_, qp_.recv_cq, entry);
  qp_.receives_taken.store(taken + 1);
}

}  // namespace softnic
