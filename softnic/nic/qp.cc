// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/qp.h"

#include <algorithm>
#include <cerrno>

#include "common/base/clock.h"
#include "softnic/fabric/events.h"
#include "softnic/nic/event_acks.h"
#include "softnic/nic/fence.h"
#include "softnic/nic/limits.h"

namespace softnic {
namespace {

// The work of a post before it returns, a few microseconds. The engine does the rest.
constexpr Requester::Budget kPostBudget = {64 << 10, 256};
// The work of the engine for one QP before it goes on to the next.
constexpr Requester::Budget kTurnBudget = {256 << 10, 64};

constexpr std::uint64_t kSendOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

std::uint32_t receive_stride(const ibv_qp_cap& cap) {
  return static_cast<std::uint32_t>(sizeof(ReceiveRecord)) +
         std::max(cap.max_recv_sge, 1u) * static_cast<std::uint32_t>(sizeof(SgeRecord));
}

std::uint64_t receive_ring_bytes(const ibv_qp_cap& cap) {
  return std::uint64_t{std::max(cap.max_recv_wr, 1u)} * receive_stride(cap);
}

int check_init(const Pd& pd, const ibv_qp_init_attr_ex& init) {
  if (init.qp_type != IBV_QPT_RC) return EOPNOTSUPP;
  if ((init.comp_mask & ~std::uint32_t{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS}) !=
      0) {
    return EOPNOTSUPP;
  }
  if ((init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
      (init.send_ops_flags & ~kSendOps) != 0) {
    return EOPNOTSUPP;
  }
  if (init.send_cq == nullptr || init.recv_cq == nullptr) return EINVAL;
  if (&Cq::of(init.send_cq).owner() != &pd.owner || &Cq::of(init.recv_cq).owner() != &pd.owner) {
    return EINVAL;
  }
  if (init.srq != nullptr && init.srq->context != &pd.owner.context) return EINVAL;
  const ibv_qp_cap& cap = init.cap;
  if (cap.max_send_wr > kMaxQpWr || cap.max_recv_wr > kMaxQpWr || cap.max_send_sge > kMaxSge ||
      cap.max_recv_sge > kMaxSge || cap.max_inline_data > kMaxInline) {
    return EINVAL;
  }
  return 0;
}

ibv_qp_init_attr granted(const ibv_qp_init_attr_ex& init) {
  ibv_qp_init_attr attr = {};
  attr.qp_context = init.qp_context;
  attr.send_cq = init.send_cq;
  attr.recv_cq = init.recv_cq;
  attr.srq = init.srq;
  attr.cap = init.cap;
  if (init.srq != nullptr) attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;  // it has none
  attr.qp_type = init.qp_type;
  attr.sq_sig_all = init.sq_sig_all;
  return attr;
}

}  // namespace

Qp* Qp::create(Pd& pd, ibv_qp_init_attr_ex& wanted) {
  errno = check_init(pd, wanted);
  if (errno != 0) return nullptr;
  const ibv_qp_init_attr init = granted(wanted);
  Runtime& runtime = *pd.owner.runtime;
  const auto index = runtime.qp_indices().take();
  const bool has_pages = index && runtime.allocate_pages_of(runtime.arena().qp(*index));
  const auto ring = has_pages ? runtime.take_ring(receive_ring_bytes(init.cap)) : std::nullopt;
  if (!ring) {
    if (index) runtime.qp_indices().give_back(*index);
    errno = ENOMEM;
    return nullptr;
  }
  QpRecord& record = runtime.arena().qp(*index);
  record.pd = pd.number;
  record.device = pd.owner.device;
  record.recv_cq = Cq::of(init.recv_cq).index();
  record.srq = init.srq != nullptr ? Srq::of(init.srq).index() : 0;
  record.event_number = pd.owner.pipe.number;
  record.serial = runtime.next_serial();
  record.receive_offset = *ring;
  record.receive_depth = std::max(init.cap.max_recv_wr, 1u);
  record.receive_stride = receive_stride(init.cap);
  return new Qp(pd, *index, init);
}

Qp::Qp(Pd& pd, std::uint32_t index, const ibv_qp_init_attr& init) noexcept
    : ibv_qp_ex{},
      owner_(pd.owner),
      pd_(pd),
      index_(index),
      record_(pd.owner.runtime->arena().qp(index)),
      init_(init),
      sends_(init.cap.max_send_wr, std::max(init.cap.max_send_sge, 1u), init.cap.max_inline_data),
      requester_(*this, sends_) {
  qp_base.context = &owner_.context;
  qp_base.qp_context = init.qp_context;
  qp_base.pd = &pd;
  qp_base.send_cq = init.send_cq;
  qp_base.recv_cq = init.recv_cq;
  qp_base.srq = init.srq;
  qp_base.handle = index;
  qp_base.qp_num = make_qpn(runtime().slot(), index);
  qp_base.qp_type = init.qp_type;
  pthread_mutex_init(&qp_base.mutex, nullptr);
  pthread_cond_init(&qp_base.cond, nullptr);
  install_wr_functions(*this);
  reset_locked();
  runtime().list_qp(index_, this);
  runtime().qps().add(*this);
  Cq::of(init.send_cq).users.fetch_add(1);
  Cq::of(init.recv_cq).users.fetch_add(1);
  if (init.srq != nullptr) Srq::of(init.srq).users.fetch_add(1);
  pd_.children.fetch_add(1);
}

Qp::~Qp() {
  runtime().engine().cancel(*this);
  {
    const std::lock_guard guard(run_mutex_);
    reset_locked();
  }
  // Removed from the list only now, because a concurrent deregistration must find this QP to wait
  // for its requester.
  runtime().qps().remove(*this);
  wait_for_acks(qp_base.mutex, qp_base.cond, qp_base.events_completed, async_reported);
  runtime().list_qp(index_, nullptr);
  pd_.children.fetch_sub(1);
  Cq::of(qp_base.send_cq).users.fetch_sub(1);
  Cq::of(qp_base.recv_cq).users.fetch_sub(1);
  if (Srq* const srq = shared_queue()) srq->users.fetch_sub(1);
  pthread_cond_destroy(&qp_base.cond);
  pthread_mutex_destroy(&qp_base.mutex);
  runtime().give_back_ring(record_.receive_offset, receive_ring_bytes(init_.cap));
  runtime().qp_indices().give_back(index_);
}

int Qp::check_may_send() const {
  const ibv_qp_state now = state();
  return now == IBV_QPS_RESET || now == IBV_QPS_INIT || now == IBV_QPS_RTR ? EINVAL : 0;
}

int Qp::post_send(ibv_send_wr* wr, ibv_send_wr** bad) {
  int error = check_may_send();
  const std::int64_t posted_at = requester_.is_paced() ? beeline::now_ns() : 0;
  {
    const std::lock_guard guard(post_lock_);
    for (; error == 0 && wr != nullptr; wr = wr->next) {
      error = sends_.check(*wr);
      if (error == 0 && sends_.room() == 0) error = ENOMEM;
      if (error != 0) break;
      sends_.append(*wr, init_.sq_sig_all != 0, posted_at);
    }
  }
  if (error != 0) *bad = wr;
  kick();
  return error;
}

int Qp::post_whole_batch(const ibv_send_wr* first, std::size_t count) {
  if (const int error = check_may_send(); error != 0) return error;
  for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    if (const int error = sends_.check(*wr); error != 0) return error;
  }
  const std::int64_t posted_at = requester_.is_paced() ? beeline::now_ns() : 0;
  {
    const std::lock_guard guard(post_lock_);
    if (sends_.room() < count) return ENOMEM;
    for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
      sends_.append(*wr, init_.sq_sig_all != 0, posted_at);
    }
  }
  kick();
  return 0;
}

// Runs the requester. If another thread holds the QP, schedules it instead, because that thread may
// have looked for work before the new request was posted.
void Qp::kick() {
  std::optional<std::int64_t> again;
  do {
    const std::unique_lock lock(run_mutex_, std::try_to_lock);
    if (!lock) return runtime().engine().schedule(*this, beeline::now_ns());
    again = requester_.run(kPostBudget);
    report_drained_locked();
  } while (!again && requester_.can_run());
  if (again) runtime().engine().schedule(*this, *again);
}

std::optional<std::int64_t> Qp::run_job() {
  const std::lock_guard guard(run_mutex_);
  const auto again = requester_.run(kTurnBudget);
  report_drained_locked();
  return again;
}

int Qp::append_receive(const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > init_.cap.max_recv_sge)
    return EINVAL;
  const std::uint64_t posted = record_.receives_posted.load(std::memory_order_relaxed);
  if (posted - receives_retired_.load(std::memory_order_acquire) >= init_.cap.max_recv_wr) {
    return ENOMEM;
  }
  ReceiveRecord& receive = runtime().arena().receive(record_, posted);
  kill_point_here();
  receive.wr_id = wr.wr_id;
  receive.sge_count = static_cast<std::uint32_t>(wr.num_sge);
  for (std::uint32_t i = 0; i < receive.sge_count; ++i) {
    Arena::sges(receive)[i] = {wr.sg_list[i].addr, wr.sg_list[i].length, wr.sg_list[i].lkey};
  }
  record_.receives_posted.store(posted + 1);
  return 0;
}

int Qp::post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  int error = state() == IBV_QPS_RESET || qp_base.srq != nullptr ? EINVAL : 0;
  {
    const std::lock_guard guard(receive_lock_);
    for (; error == 0 && wr != nullptr; wr = wr->next) {
      error = append_receive(*wr);
      if (error != 0) break;
    }
  }
  if (error != 0) *bad = wr;
  if (state() == IBV_QPS_ERR) {
    const std::lock_guard guard(run_mutex_);
    flush_locked();
  }
  return error;
}

void Qp::retire(CqeKind kind, std::uint64_t sequence) noexcept {
  switch (kind) {
    case CqeKind::kSend: sends_.retire(sequence); break;
    case CqeKind::kReceive: receives_retired_.store(sequence + 1, std::memory_order_release); break;
    case CqeKind::kShared: shared_queue()->give_back(static_cast<std::uint32_t>(sequence)); break;
  }
}

void Qp::push_send_completion(const CqeRecord& entry) {
  push_completion(runtime(), {runtime().arena(), runtime().slot()}, Cq::of(qp_base.send_cq).index(),
                  entry);
}

bool Qp::finish_error_transition() {
  const bool overrun = Cq::of(qp_base.send_cq).record().overrun.load() != 0 ||
                       Cq::of(qp_base.recv_cq).record().overrun.load() != 0;
  const bool breaking = record_.breaking.load() != 0;
  if (!overrun && !breaking && state() != IBV_QPS_ERR) return true;
  const std::lock_guard guard(run_mutex_);
  if (overrun && state() != IBV_QPS_RESET) enter_error_locked();
  if (state() != IBV_QPS_ERR) {
    if (breaking && runtime().fabric().is_slot_alive(qpn_slot(record_.dest_qpn.load())))
      return false;
    record_.breaking.store(0);  // the peer died before it made the move
    return true;
  }
  record_.breaking.store(0);
  flush_locked();
  return true;
}

void Qp::enter_error_locked() {
  std::uint64_t word = record_.state.load();
  while (state_of(word) != IBV_QPS_ERR &&
         !record_.state.compare_exchange(word, state_word(word >> 8, IBV_QPS_ERR))) {
  }
}

void Qp::flush_locked() {
  if (owner_.is_dead()) return;  // a removed device adds no completions
  requester_.flush();
  const std::lock_guard guard(receive_lock_);
  if (receives_fenced_ && qp_base.srq != nullptr) return;
  if (!receives_fenced_) find_completed_receives();
  if (qp_base.srq != nullptr) {
    flush_shared_receives();
  } else {
    flush_receives();
  }
}

// Waits for the access that a peer's requester was making when the QP moved to ERR. Then finds
// which receives it completed: from the completions, because it may have died between adding a
// completion and counting the receive. The unpolled entries are read before the count of polled
// ones, because a poll moves an entry from the former to the latter.
void Qp::find_completed_receives() {
  const std::uint32_t dest = record_.dest_qpn.load();
  if (dest != 0) wait_for_requester(runtime(), dest);
  const std::uint64_t unpolled = Cq::of(qp_base.recv_cq).unpolled_up_to(index_, CqeKind::kReceive);
  receives_ended_ = std::max(unpolled, receives_retired_.load());
  receives_fenced_ = true;
}

void Qp::push_flushed_receive(CqeKind kind, std::uint64_t sequence, std::uint64_t name) {
  CqeRecord entry = {};
  entry.wr_id = name;
  entry.sequence = sequence;
  entry.kind = kind;
  entry.qp_index = index_;
  entry.status = IBV_WC_WR_FLUSH_ERR;
  entry.opcode = IBV_WC_RECV;
  entry.qp_num = qp_num();
  push_completion(runtime(), {runtime().arena(), runtime().slot()}, Cq::of(qp_base.recv_cq).index(),
                  entry);
}

void Qp::flush_receives() {
  const std::uint64_t posted = record_.receives_posted.load();
  for (; receives_ended_ < posted; ++receives_ended_) {
    push_flushed_receive(CqeKind::kReceive, receives_ended_,
                         runtime().arena().receive(record_, receives_ended_).wr_id);
  }
}

// Of a shared receive queue, flushes only the receives that this queue pair has taken, and sends
// the event "last WQE reached". A poll frees a slot, so unpolled entries are read first.
void Qp::flush_shared_receives() {
  Srq& srq = *shared_queue();
  const std::vector<std::uint32_t> completed = Cq::of(qp_base.recv_cq).unpolled_shared(index_);
  for (const std::uint32_t slot : srq.held_by(qp_num())) {
    if (std::find(completed.begin(), completed.end(), slot) != completed.end()) continue;
    push_flushed_receive(CqeKind::kShared, slot, srq.wr_id(slot));
  }
  record_.shared_receive.store(0);
  send_event(runtime().fabric(), owner_.pipe,
             EventRecord{IBV_EVENT_QP_LAST_WQE_REACHED, index_, record_.serial});
}

}  // namespace softnic
