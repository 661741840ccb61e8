// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/srq.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "softnic/nic/event_acks.h"
#include "softnic/nic/limits.h"

namespace softnic {
namespace {

std::uint32_t slot_stride(const ibv_srq_attr& attr) {
  return static_cast<std::uint32_t>(sizeof(SharedReceive)) +
         std::max(attr.max_sge, 1u) * static_cast<std::uint32_t>(sizeof(SgeRecord));
}

std::uint64_t slots_bytes(const SrqRecord& srq) { return std::uint64_t{srq.depth} * srq.stride; }
std::uint64_t srq_bytes(std::uint32_t depth, std::uint32_t stride) {
  return std::uint64_t{depth} * (stride + sizeof(Shared<std::uint32_t>));
}

}  // namespace

Srq* Srq::create(Pd& pd, const ibv_srq_init_attr& init) {
  const ibv_srq_attr& attr = init.attr;
  if (attr.max_wr < 1 || attr.max_wr > kMaxSrqWr || attr.max_sge > kMaxSge) {
    errno = EINVAL;
    return nullptr;
  }
  Runtime& runtime = *pd.owner.runtime;
  const std::uint32_t stride = slot_stride(attr);
  const auto index = runtime.srq_indices().take();
  const bool has_pages = index && runtime.allocate_pages_of(runtime.arena().srq(*index));
  const auto ring = has_pages ? runtime.take_ring(srq_bytes(attr.max_wr, stride)) : std::nullopt;
  if (!ring) {
    if (index) runtime.srq_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  }
  SrqRecord& record = runtime.arena().srq(*index);
  record.posted.store(0);
  record.taken.store(0);
  record.limit.store(0);  // only ibv_modify_srq arms it
  record.pd = pd.number;
  record.depth = attr.max_wr;
  record.stride = stride;
  record.slots_offset = *ring;
  record.fifo_offset = *ring + slots_bytes(record);
  record.event_number = pd.owner.pipe.number;
  record.device = pd.owner.device;
  record.serial = runtime.next_serial();
  return new Srq(pd, *index, init);
}

Srq::Srq(Pd& domain, std::uint32_t index, const ibv_srq_init_attr& init) noexcept
    : ibv_srq{},
      pd_(domain),
      index_(index),
      record_(domain.owner.runtime->arena().srq(index)),
      max_sge_(init.attr.max_sge) {
  context = &domain.owner.context;
  srq_context = init.srq_context;
  pd = &domain;
  handle = index;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  free_.reserve(record_.depth);
  for (std::uint32_t slot = record_.depth; slot-- > 0;) give_back(slot);
  pd_.children.fetch_add(1);
  runtime().srqs().add(*this);
}

Srq::~Srq() {
  runtime().srqs().remove(*this);
  wait_for_acks(mutex, cond, events_completed, async_reported);
  pd_.children.fetch_sub(1);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
  runtime().give_back_ring(record_.slots_offset, srq_bytes(record_.depth, record_.stride));
  runtime().srq_indices().give_back(index_);
}

// Fills the slot before it marks it as posted, and puts it into the FIFO before it counts it there.
int Srq::append(const ibv_recv_wr& wr) {
  if (record_.depth == 0) return EINVAL;  // in a forked child, where the arena is zero
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
  if (free_.empty()) return ENOMEM;
  const std::uint32_t number = free_.back();
  free_.pop_back();
  SharedReceive& slot = arena().slot(record_, number);
  slot.receive.wr_id = wr.wr_id;
  slot.receive.sge_count = static_cast<std::uint32_t>(wr.num_sge);
  for (std::uint32_t i = 0; i < slot.receive.sge_count; ++i) {
    Arena::sges(slot.receive)[i] = {wr.sg_list[i].addr, wr.sg_list[i].length, wr.sg_list[i].lkey};
  }
  slot.holder.store(kSlotPosted);
  const std::uint64_t posted = record_.posted.load(std::memory_order_relaxed);
  arena().fifo(record_, posted).store(number);
  record_.posted.store(posted + 1);
  return 0;
}

int Srq::post(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const std::lock_guard guard(lock_);
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = append(*wr); error != 0) {
      *bad = wr;
      return error;
    }
  }
  return 0;
}

int Srq::modify(const ibv_srq_attr& attr, int mask) {
  if ((mask & ~IBV_SRQ_LIMIT) != 0) return EOPNOTSUPP;  // the size cannot be changed
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attr.srq_limit > record_.depth) return EINVAL;
  record_.limit.store(attr.srq_limit);
  return 0;
}

ibv_srq_attr Srq::query() const {
  const std::uint32_t limit = record_.limit.load();
  return {.max_wr = record_.depth,
          .max_sge = max_sge_,
          .srq_limit = (limit & kLimitNotifying) != 0 ? 0 : limit};
}

void Srq::give_back(std::uint32_t slot) {
  const std::lock_guard guard(lock_);
  drop_if_stale(slot);
  arena().slot(record_, slot).holder.store(kSlotFree);
  free_.push_back(slot);
}

// If the process that took the slot died before it advanced `taken`, the slot is still in the FIFO.
// Posting it again would put it there twice, and the FIFO could overflow.
void Srq::drop_if_stale(std::uint32_t slot) {
  const std::uint64_t posted = record_.posted.load(std::memory_order_relaxed);
  const auto is_stale = [&](std::uint64_t taken) {
    return taken != posted && arena().fifo(record_, taken).load() == slot;
  };
  if (!is_stale(record_.taken.load())) return;
  runtime().take(record_.take_lock);
  const std::uint64_t taken = record_.taken.load();
  if (is_stale(taken)) record_.taken.store(taken + 1);
  record_.take_lock.unlock();
}

std::vector<std::uint32_t> Srq::held_by(std::uint32_t qpn) const {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < record_.depth; ++slot) {
    if (arena().slot(record_, slot).holder.load() == qpn) slots.push_back(slot);
  }
  return slots;
}

std::uint64_t Srq::wr_id(std::uint32_t slot) const {
  return arena().slot(record_, slot).receive.wr_id;
}

}  // namespace softnic
