// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/cq.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>

#include "softnic/nic/event_acks.h"
#include "softnic/nic/limits.h"
#include "softnic/nic/qp.h"

namespace softnic {
namespace {

uint64_t ring_bytes(uint32_t entries) { return uint64_t{entries} * sizeof(CqeRecord); }

// A failure says no more than this, on softnic as on hardware: the other fields are left as they
// were, so that a program that trusts them is found out.
void fill(ibv_wc& wc, const CqeRecord& entry) {
  wc.wr_id = entry.wr_id;
  wc.status = static_cast<ibv_wc_status>(entry.status);
  wc.vendor_err = entry.vendor_err;
  wc.qp_num = entry.qp_num;
  if (wc.status != IBV_WC_SUCCESS) return;
  wc.opcode = static_cast<ibv_wc_opcode>(entry.opcode);
  wc.byte_len = entry.byte_len;
  wc.imm_data = entry.imm_data;
  wc.wc_flags = entry.wc_flags;
  // The rest speaks of datagrams.
  wc.src_qp = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

}  // namespace

Cq* Cq::create(Context& owner, int capacity, void* user) {
  if (capacity < 1 || capacity > kMaxCqe) {
    errno = EINVAL;
    return nullptr;
  }
  Runtime& runtime = *owner.runtime;
  const uint32_t entries = std::bit_ceil(static_cast<uint32_t>(capacity));
  const auto index = runtime.cq_indices().take();
  const bool backed = index && runtime.back(runtime.arena().cq(*index));
  const auto offset = backed ? runtime.take_ring(ring_bytes(entries)) : std::nullopt;
  if (!offset) {
    if (index) runtime.cq_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  }
  CqRecord& record = runtime.arena().cq(*index);
  record.tail.store(0);
  record.head.store(0);
  record.overrun.store(0);
  record.capacity = static_cast<uint32_t>(capacity);
  record.ring_entries = entries;
  record.ring_offset = *offset;
  record.event_number = owner.pipe.number;
  record.device = owner.device;
  record.serial = runtime.next_serial();
  return new Cq(owner, *index, capacity, user);
}

Cq::Cq(Context& owner, uint32_t index, int entries, void* user) noexcept
    : ibv_cq{}, owner_(owner), index_(index), record_(owner.runtime->arena().cq(index)) {
  context = &owner.context;
  cq_context = user;
  handle = index;
  cqe = entries;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  owner_.objects.fetch_add(1);
  owner_.runtime->add_cq(*this);
}

Cq::~Cq() {
  owner_.runtime->remove_cq(*this);  // no event names it from here on
  wait_for_acks(mutex, cond, async_events_completed, async_reported);
  owner_.objects.fetch_sub(1);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
  Runtime& runtime = *owner_.runtime;
  runtime.give_back_ring(record_.ring_offset, ring_bytes(record_.ring_entries));
  runtime.cq_indices().give_back(index_);
}

int Cq::poll(int count, ibv_wc* wc) {
  if (count < 0) return -1;
  poll_lock_.lock();
  const int taken = take_locked(count, wc);
  poll_lock_.unlock();
  if (taken > 0 || count == 0) return taken;
  // Nothing there: see what the NIC could do meanwhile, and look again.
  owner_.runtime->attend();
  if (record_.overrun.load(std::memory_order_relaxed) != 0) return break_users();
  owner_.runtime->engine().help();
  const std::lock_guard guard(poll_lock_);
  return take_locked(count, wc);
}

// Whoever overran the queue may have died before it said so to anybody.
int Cq::break_users() {
  owner_.runtime->for_each_qp([&](Qp& qp) {
    if (qp.qp_base.send_cq == this || qp.qp_base.recv_cq == this) (void)qp.settle_breakage();
  });
  return -1;
}

int Cq::take_locked(int count, ibv_wc* wc) {
  const uint64_t tail = record_.tail.load();
  uint64_t head = record_.head.load(std::memory_order_relaxed);
  if (head == tail) [[likely]]
    return 0;
  const Runtime& runtime = *owner_.runtime;
  int taken = 0;
  for (; taken < count && head != tail; ++head) {
    const CqeRecord& entry = runtime.arena().cqe(record_, head);
    runtime.qp_at(entry.qp_index)->retire(entry.kind, entry.sequence);
    fill(wc[taken++], entry);
  }
  record_.head.store(head);
  return taken;
}

void Cq::remove_entries(uint32_t qp_index) {
  Runtime& runtime = *owner_.runtime;
  const std::lock_guard guard(poll_lock_);
  // Pushers stay out while the entries behind move up. Their last store is the tail's, so the lock
  // of a dead one guards a whole ring.
  runtime.take(record_.push_lock);
  const uint64_t tail = record_.tail.load();
  uint64_t to = record_.head.load(std::memory_order_relaxed);
  for (uint64_t from = to; from != tail; ++from) {
    const CqeRecord entry = runtime.arena().cqe(record_, from);
    if (entry.qp_index != qp_index) runtime.arena().cqe(record_, to++) = entry;
  }
  record_.tail.store(to);
  record_.push_lock.unlock();
}

uint64_t Cq::unpolled_up_to(uint32_t qp_index, CqeKind kind) {
  const std::lock_guard guard(poll_lock_);
  uint64_t end = 0;
  const uint64_t tail = record_.tail.load();
  for (uint64_t at = record_.head.load(std::memory_order_relaxed); at != tail; ++at) {
    const CqeRecord& entry = owner_.runtime->arena().cqe(record_, at);
    if (entry.kind == kind && entry.qp_index == qp_index) end = std::max(end, entry.sequence + 1);
  }
  return end;
}

}  // namespace softnic
