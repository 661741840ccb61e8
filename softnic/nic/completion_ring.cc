// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/completion_ring.h"

#include <infiniband/verbs.h>

#include "common/base/clock.h"
#include "softnic/fabric/events.h"
#include "softnic/nic/comp_channel.h"

namespace softnic {
namespace {

void mark_overrun(Runtime& runtime, const ArenaRef& where, CqRecord& cq) {
  if (cq.overrun.exchange(1) != 0) return;
  where.arena.header().break_count.fetch_add(1);
  send_event(runtime.fabric(), EventPipe{cq.device, where.slot, cq.event_number},
             EventRecord{IBV_EVENT_CQ_ERR, 0, cq.serial});
}

// With the hazard `bunch`, completions become visible together, at multiples of an interval.
std::uint64_t time_of_appearance(const FabricHeader& header) {
  const std::uint64_t bunch = header.hazards.bunch_ns.load(std::memory_order_relaxed);
  if (bunch == 0) [[likely]]
    return 0;
  return (static_cast<std::uint64_t>(beeline::now_ns()) / bunch + 1) * bunch;
}

}  // namespace

bool has_to_notify(std::uint32_t armed, const CqeRecord& entry) noexcept {
  const bool urgent = entry.solicited != 0 || entry.status != IBV_WC_SUCCESS;
  return armed == kArmedForAny || (armed == kArmedForSolicited && urgent);
}

void notify_channel(const Fabric& fabric, const ArenaRef& where, CqRecord& cq) {
  std::uint32_t word = cq.armed.load();
  do {
    if (armed_state(word) == kNotArmed || armed_state(word) == kNotifying) return;
  } while (!cq.armed.compare_exchange(word, armed_next(word, kNotifying)));
  finish_notifying(fabric, where, cq, armed_next(word, kNotifying));
}

// If the owner has armed the queue again in the meantime, it stays armed. If the event cannot be
// sent (no descriptor, or the pipe is full), the owner's watch job sends it later (Cq::run_job).
void finish_notifying(const Fabric& fabric, const ArenaRef& where, CqRecord& cq,
                      std::uint32_t word) {
  cq.visible_before.store(cq.tail.load());
  const EventPipe pipe{kChannelDevice, where.slot, cq.channel - 1};
  if (!send_event(fabric, pipe, EventRecord{0, 0, cq.serial})) return;
  const std::uint32_t notified = armed_next(word, kNotArmed);
  (void)cq.armed.compare_exchange(word, notified);
}

void push_completion(Runtime& runtime, const ArenaRef& where, std::uint32_t cq_index,
                     const CqeRecord& entry) {
  CqRecord& cq = where.arena.cq(cq_index);
  runtime.take(cq.push_lock);
  const std::uint64_t tail = cq.tail.load(std::memory_order_relaxed);
  const bool full = tail - cq.head.load() >= cq.capacity;
  if (!full) {
    kill_point_here();
    CqeRecord& place = where.arena.cqe(cq, tail);
    place = entry;
    place.visible_at = time_of_appearance(runtime.header());
    cq.tail.store(tail + 1);
  }
  cq.push_lock.unlock();
  if (full) return mark_overrun(runtime, where, cq);
  if (cq.channel == 0) return;
  // The owner arms and then looks for entries; this function adds an entry and then looks whether
  // the queue is armed. Both use a read-modify-write, which on x86 is a full fence.
  if (has_to_notify(armed_state(cq.armed.fetch_or(0)), entry))
    notify_channel(runtime.fabric(), where, cq);
}

}  // namespace softnic
