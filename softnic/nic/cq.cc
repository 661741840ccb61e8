// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/cq.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <thread>

#include "common/base/clock.h"
#include "softnic/nic/completion_ring.h"
#include "softnic/nic/cq_ex.h"
#include "softnic/nic/event_acks.h"
#include "softnic/nic/limits.h"
#include "softnic/nic/qp.h"

namespace softnic {
namespace {

constexpr std::int64_t kWatchNs = 10 * beeline::kNsPerMs;
// 0.3 s. On a busy machine, a living process has been seen not to run for 0.1 s.
constexpr std::uint32_t kLooksBeforeRepair = 30;

std::uint64_t ring_bytes(std::uint32_t entries) {
  return std::uint64_t{entries} * sizeof(CqeRecord);
}

// A failed completion has only these fields, as on hardware. The others keep their old values, so
// that a program that wrongly uses them fails.
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
  // The remaining fields are for datagrams.
  wc.src_qp = 0;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

bool is_visible(const CqRecord& cq, const CqeRecord& entry, std::uint64_t position) {
  return entry.visible_at == 0 || position < cq.visible_before.load() ||
         entry.visible_at <= static_cast<std::uint64_t>(beeline::now_ns());
}

}  // namespace

Cq* Cq::create(Context& owner, int capacity, void* user, CompChannel* channel) {
  if (capacity < 1 || capacity > kMaxCqe) {
    errno = EINVAL;
    return nullptr;
  }
  Runtime& runtime = *owner.runtime;
  const std::uint32_t entries = std::bit_ceil(static_cast<std::uint32_t>(capacity));
  const auto index = runtime.cq_indices().take();
  const bool has_pages = index && runtime.allocate_pages_of(runtime.arena().cq(*index));
  const auto offset = has_pages ? runtime.take_ring(ring_bytes(entries)) : std::nullopt;
  if (!offset) {
    if (index) runtime.cq_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  }
  CqRecord& record = runtime.arena().cq(*index);
  record.tail.store(0);
  record.head.store(0);
  record.overrun.store(0);
  record.armed.store(kNotArmed);
  record.visible_before.store(0);
  record.capacity = static_cast<std::uint32_t>(capacity);
  record.ring_entries = entries;
  record.ring_offset = *offset;
  record.event_number = owner.pipe.number;
  record.device = owner.device;
  record.channel = channel != nullptr ? channel->pipe.number + 1 : 0;
  record.serial = runtime.next_serial();
  return new Cq(owner, *index, capacity, user, channel);
}

Cq::Cq(Context& owner, std::uint32_t index, int entries, void* user,
       CompChannel* the_channel) noexcept
    : ibv_cq_ex{}, owner_(owner), index_(index), record_(owner.runtime->arena().cq(index)) {
  context = &owner.context;
  channel = the_channel;
  cq_context = user;
  handle = index;
  cqe = entries;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  install_poll_functions(*this);
  owner_.objects.fetch_add(1);
  owner_.runtime->cqs().add(*this);
  if (channel == nullptr) return;
  pthread_mutex_lock(&context->mutex);
  ++channel->refcnt;
  pthread_mutex_unlock(&context->mutex);
}

Cq::~Cq() {
  owner_.runtime->engine().cancel(*this);
  owner_.runtime->cqs().remove(*this);  // no event is returned for it from here on
  wait_for_acks(mutex, cond, async_events_completed, async_reported);
  wait_for_acks(mutex, cond, comp_events_completed, channel_events_);
  if (channel != nullptr) {
    CompChannel::of(channel).forget(serial());
    pthread_mutex_lock(&context->mutex);
    --channel->refcnt;
    pthread_mutex_unlock(&context->mutex);
  }
  owner_.objects.fetch_sub(1);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
  Runtime& runtime = *owner_.runtime;
  runtime.give_back_ring(record_.ring_offset, ring_bytes(record_.ring_entries));
  runtime.cq_indices().give_back(index_);
}

int Cq::poll(int count, ibv_wc* wc) {
  if (count < 0) return -1;
  const int taken = take(count, wc);
  if (taken > 0 || count == 0) return taken;
  if (record_.overrun.load(std::memory_order_relaxed) != 0) return move_users_to_error();
  make_progress();
  return take(count, wc);
}

int Cq::take(int count, ibv_wc* wc) {
  lock_for_polling();
  const int taken = take_locked(count, wc);
  poll_lock_.unlock();
  if (taken != 0) copy_arrived_to_gpus();
  return taken;
}

// Copies data for GPUs to its place before the completion is returned.
void Cq::copy_arrived_to_gpus() { owner_.runtime->mirrors().copy_arrived(); }

void Cq::lock_for_polling() {
  poll_lock_.lock();
  while (iterating_) {
    poll_lock_.unlock();
    std::this_thread::yield();
    poll_lock_.lock();
  }
}

// The queue is empty, so this thread does pending work of the NIC.
void Cq::make_progress() {
  owner_.runtime->flush_broken_qps();
  owner_.runtime->engine().run_due_job();
}

// The process that overran the queue may have died before it reported that.
int Cq::move_users_to_error() {
  owner_.runtime->flush_broken_qps();
  owner_.runtime->qps().for_each([&](Qp& qp) {
    if (qp.qp_base.send_cq == plain() || qp.qp_base.recv_cq == plain())
      (void)qp.finish_error_transition();
  });
  return -1;
}

int Cq::take_locked(int count, ibv_wc* wc) {
  const std::uint64_t tail = record_.tail.load();
  std::uint64_t head = record_.head.load(std::memory_order_relaxed);
  if (head == tail) [[likely]]
    return 0;
  const Runtime& runtime = *owner_.runtime;
  int taken = 0;
  for (; taken < count && head != tail; ++head) {
    const CqeRecord& entry = runtime.arena().cqe(record_, head);
    if (!is_visible(record_, entry, head)) break;
    runtime.qp_at(entry.qp_index)->retire(entry.kind, entry.sequence);
    fill(wc[taken++], entry);
  }
  record_.head.store(head);
  return taken;
}

bool Cq::take_current_locked() {
  if (take_locked(1, &current_) == 0) return false;
  status = current_.status;
  wr_id = current_.wr_id;
  return true;
}

bool Cq::begin_iteration() {
  lock_for_polling();
  iterating_ = take_current_locked();
  const bool begun = iterating_;
  poll_lock_.unlock();
  if (begun) copy_arrived_to_gpus();
  return begun;
}

int Cq::start_poll() {
  if (begin_iteration()) return 0;
  if (record_.overrun.load(std::memory_order_relaxed) != 0) {
    (void)move_users_to_error();
    return EIO;
  }
  make_progress();
  return begin_iteration() ? 0 : ENOENT;
}

int Cq::next_poll() {
  {
    const std::lock_guard guard(poll_lock_);
    if (!take_current_locked()) return ENOENT;
  }
  copy_arrived_to_gpus();
  return 0;
}

void Cq::end_poll() {
  const std::lock_guard guard(poll_lock_);
  iterating_ = false;
}

void Cq::arm(bool solicited_only) {
  if (record_.channel == 0) return;
  {
    const std::lock_guard guard(poll_lock_);  // keeps remove_entries() out
    tail_when_armed_ = record_.tail.load();
    record_.visible_before.store(tail_when_armed_);
  }
  // A request for solicited completions does not replace an earlier one for any completion.
  const std::uint32_t wanted = solicited_only ? kArmedForSolicited : kArmedForAny;
  std::uint32_t before = record_.armed.load();
  while (!(solicited_only && armed_state(before) == kArmedForAny) &&
         !record_.armed.compare_exchange(before, armed_next(before, wanted))) {
  }
  if (!is_watched_.exchange(true)) {
    owner_.runtime->engine().schedule(*this, beeline::now_ns() + kWatchNs);
  }
}

// Whether there is an unpolled completion for which no event was sent.
bool Cq::has_unnotified_completion() {
  const std::uint32_t armed = armed_state(record_.armed.load());
  const std::lock_guard guard(poll_lock_);
  const std::uint64_t tail = record_.tail.load();
  std::uint64_t at = std::max(record_.head.load(std::memory_order_relaxed), tail_when_armed_);
  for (; at < tail; ++at) {
    if (has_to_notify(armed, owner_.runtime->arena().cqe(record_, at))) return true;
  }
  return false;
}

// A program that sleeps on its channel does not poll, so this job does what polling does: it
// flushes QPs that a peer has moved to ERR, and sends the event of a process that died before it
// sent it.
std::optional<std::int64_t> Cq::run_job() {
  owner_.runtime->flush_broken_qps();
  const ArenaRef here{owner_.runtime->arena(), owner_.runtime->slot()};
  // An event without a completion could confuse a program, so a process that is only slow is left
  // alone: the word must have been the same for several runs.
  const std::uint32_t word = record_.armed.load();
  looks_ = word == seen_ ? looks_ + 1 : 0;
  seen_ = word;
  if (looks_ >= kLooksBeforeRepair) {
    looks_ = 0;
    if (armed_state(word) == kNotifying) {
      finish_notifying(owner_.runtime->fabric(), here, record_, word);
    } else if (has_unnotified_completion()) {
      notify_channel(owner_.runtime->fabric(), here, record_);
    }
  }
  if (armed_state(record_.armed.load()) != kNotArmed) return beeline::now_ns() + kWatchNs;
  is_watched_.store(false);
  // A thread may have armed the queue between the load and the store, when it was still watched.
  const bool again = armed_state(record_.armed.load()) != kNotArmed && !is_watched_.exchange(true);
  return again ? std::optional(beeline::now_ns() + kWatchNs) : std::nullopt;
}

void Cq::count_channel_event() noexcept {
  pthread_mutex_lock(&mutex);
  ++channel_events_;
  pthread_mutex_unlock(&mutex);
}

// Moves the entries into a new ring. Both locks are held meanwhile.
int Cq::resize(int capacity) {
  if (capacity < 1 || capacity > kMaxCqe) return EINVAL;
  Runtime& runtime = *owner_.runtime;
  const std::uint32_t entries = std::bit_ceil(static_cast<std::uint32_t>(capacity));
  const auto offset = runtime.take_ring(ring_bytes(entries));
  if (!offset) return ENOMEM;
  const std::lock_guard guard(poll_lock_);
  runtime.take(record_.push_lock);
  const std::uint64_t tail = record_.tail.load();
  const std::uint64_t head = record_.head.load();
  if (tail - head > static_cast<std::uint64_t>(capacity)) {
    record_.push_lock.unlock();
    runtime.give_back_ring(*offset, ring_bytes(entries));
    return EINVAL;  // the unpolled entries do not fit
  }
  CqRecord grown_view;
  grown_view.ring_offset = *offset;
  grown_view.ring_entries = entries;
  for (std::uint64_t at = head; at != tail; ++at) {
    runtime.arena().cqe(grown_view, at) = runtime.arena().cqe(record_, at);
  }
  const std::uint64_t old_offset = record_.ring_offset;
  const std::uint32_t old_entries = record_.ring_entries;
  record_.ring_offset = *offset;
  record_.ring_entries = entries;
  record_.capacity = static_cast<std::uint32_t>(capacity);
  record_.push_lock.unlock();
  runtime.give_back_ring(old_offset, ring_bytes(old_entries));
  cqe = capacity;
  return 0;
}

void Cq::remove_entries(std::uint32_t qp_index) {
  Runtime& runtime = *owner_.runtime;
  const std::lock_guard guard(poll_lock_);
  // The lock keeps producers out while later entries move up. A producer stores the tail last, so
  // the ring is consistent if the lock was taken from a dead one.
  runtime.take(record_.push_lock);
  const std::uint64_t tail = record_.tail.load();
  std::uint64_t to = record_.head.load(std::memory_order_relaxed);
  std::uint64_t removed_before_arming = 0;
  for (std::uint64_t from = to; from != tail; ++from) {
    const CqeRecord entry = runtime.arena().cqe(record_, from);
    if (entry.qp_index != qp_index) {
      runtime.arena().cqe(record_, to++) = entry;
      continue;
    }
    if (from < tail_when_armed_) ++removed_before_arming;
  }
  record_.tail.store(to);
  tail_when_armed_ -= removed_before_arming;
  record_.push_lock.unlock();
}

std::uint64_t Cq::unpolled_up_to(std::uint32_t qp_index, CqeKind kind) {
  const std::lock_guard guard(poll_lock_);
  std::uint64_t end = 0;
  const std::uint64_t tail = record_.tail.load();
  for (std::uint64_t at = record_.head.load(std::memory_order_relaxed); at != tail; ++at) {
    const CqeRecord& entry = owner_.runtime->arena().cqe(record_, at);
    if (entry.kind == kind && entry.qp_index == qp_index) end = std::max(end, entry.sequence + 1);
  }
  return end;
}

std::vector<std::uint32_t> Cq::unpolled_shared(std::uint32_t qp_index) {
  const std::lock_guard guard(poll_lock_);
  std::vector<std::uint32_t> slots;
  const std::uint64_t tail = record_.tail.load();
  for (std::uint64_t at = record_.head.load(std::memory_order_relaxed); at != tail; ++at) {
    const CqeRecord& entry = owner_.runtime->arena().cqe(record_, at);
    if (entry.kind == CqeKind::kShared && entry.qp_index == qp_index) {
      slots.push_back(static_cast<std::uint32_t>(entry.sequence));
    }
  }
  return slots;
}

}  // namespace softnic
