// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/completion_ring.h"

#include <infiniband/verbs.h>

#include "softnic/fabric/events.h"

namespace softnic {
namespace {

void mark_overrun(Runtime& runtime, const ArenaOf& where, CqRecord& cq) {
  if (cq.overrun.exchange(1) != 0) return;
  where.arena.header().attention.fetch_add(1);
  send_event(runtime.fabric().dir(), EventPipe{cq.device, where.slot, cq.event_number},
             EventRecord{IBV_EVENT_CQ_ERR, 0, cq.serial});
}

}  // namespace

void push_completion(Runtime& runtime, const ArenaOf& where, uint32_t cq_index,
                     const CqeRecord& entry) {
  CqRecord& cq = where.arena.cq(cq_index);
  runtime.take(cq.push_lock);
  const uint64_t tail = cq.tail.load(std::memory_order_relaxed);
  const bool full = tail - cq.head.load() >= cq.capacity;
  if (!full) {
    kill_point_here();
    where.arena.cqe(cq, tail) = entry;
    cq.tail.store(tail + 1);
  }
  cq.push_lock.unlock();
  if (full) mark_overrun(runtime, where, cq);
}

}  // namespace softnic
