// SPDX-License-Identifier: Apache-2.0
// Qp's state changes and attributes: modify, query and reset.
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "softnic/fabric/events.h"
#include "softnic/nic/fence.h"
#include "softnic/nic/limits.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/qp_states.h"

namespace softnic {
namespace {

constexpr int kPsnMask = 0xffffff;
constexpr int kAccessRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::uint32_t mtu_bytes(ibv_mtu mtu) { return 128u << mtu; }

// A number that no other connection has, so that a peer can tell connections apart.
std::uint64_t new_connection() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
    // The kernel's random pool is not ready this early after boot. No two calls get the same time.
    bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())
           << 1;
  }
  return bits | 1;
}

// A removed device executes no command; a device with the fault refuse-err refuses moves to ERR.
int check_device(const Context& context, const ibv_qp_attr& attr, int mask) {
  if (context.is_dead()) return EIO;
  const bool breaks = (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_ERR;
  return breaks && context.record().refuses_to_break.load() != 0 ? EIO : 0;
}

bool is_in_range(const ibv_qp_attr& attr, int mask) {
  const auto fits = [mask](int bit, std::uint32_t value, std::uint32_t limit) {
    return (mask & bit) == 0 || value <= limit;
  };
  return fits(IBV_QP_TIMEOUT, attr.timeout, 31) && fits(IBV_QP_RETRY_CNT, attr.retry_cnt, 7) &&
         fits(IBV_QP_RNR_RETRY, attr.rnr_retry, 7) &&
         fits(IBV_QP_MIN_RNR_TIMER, attr.min_rnr_timer, 31) &&
         fits(IBV_QP_MAX_QP_RD_ATOMIC, attr.max_rd_atomic, kMaxRdAtomic) &&
         fits(IBV_QP_MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic, kMaxRdAtomic) &&
         fits(IBV_QP_PKEY_INDEX, attr.pkey_index, 0) &&
         fits(IBV_QP_DEST_QPN, attr.dest_qp_num, 0xffffff);
}

}  // namespace

int Qp::check_addresses(const ibv_qp_attr& attr, int mask) const {
  if ((mask & IBV_QP_PORT) != 0 && !owner_.has_port(attr.port_num)) return EINVAL;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0 &&
      (attr.qp_access_flags & static_cast<unsigned>(~kAccessRights)) != 0) {
    return EINVAL;
  }
  const std::uint32_t port_number = (mask & IBV_QP_PORT) != 0 ? attr.port_num : attr_.port_num;
  if ((mask & IBV_QP_AV) != 0) {
    const ibv_ah_attr& address = attr.ah_attr;
    if (address.port_num != port_number) return EINVAL;
    const PortRecord& port = owner_.port(port_number);
    if (port.link_layer == LinkLayer::kEthernet && address.is_global == 0) return EINVAL;
    if (address.is_global != 0) {
      if (address.grh.sgid_index >= port.gid_table_len) return EINVAL;
      if (port.gids[address.grh.sgid_index].state.load() == 0) return ENODATA;  // as the kernel
    }
  }
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    const bool known = attr.path_mtu >= IBV_MTU_256 && attr.path_mtu <= IBV_MTU_4096;
    if (!known || mtu_bytes(attr.path_mtu) > owner_.port(port_number).mtu) return EINVAL;
  }
  return is_in_range(attr, mask) ? 0 : EINVAL;
}

int Qp::modify(const ibv_qp_attr& attr, int mask) {
  if (const int error = check_device(owner_, attr, mask); error != 0) return error;
  (void)finish_error_transition();
  const std::lock_guard guard(run_mutex_);
  const ibv_qp_state from = state();
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != from) return EINVAL;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : from;
  if (const int error = check_transition(from, to, mask); error != 0) return error;
  if (const int error = check_addresses(attr, mask); error != 0) return error;
  if (to == IBV_QPS_RTR && from == IBV_QPS_INIT) {
    if (const int error = check_peer_reachable(attr.dest_qp_num); error != 0) return error;
  }
  if (to == IBV_QPS_RESET) {
    reset_locked();
  } else {
    take_attributes(attr, mask);
    if ((mask & (IBV_QP_AV | IBV_QP_PORT)) != 0) requester_.forget_route();
    publish_attributes();
    set_state_locked(to);
  }
  qp_base.state = to;
  if (to == IBV_QPS_ERR) flush_locked();
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
    requester_.drain();
    drain_event_wanted_ = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr.en_sqd_async_notify != 0;
    report_drained_locked();
  }
  if (to == IBV_QPS_RTS && !requester_.is_idle()) {
    runtime().engine().schedule(*this, 0);  // requests that were posted while draining
  }
  return 0;
}

void Qp::shut_down() {
  const std::lock_guard guard(run_mutex_);
  enter_error_locked();
  flush_locked();
}

// Opens the peer before it may access this process's memory, because a fence must be able to read
// its state. Retries while the peer is joining or leaving. Returns an errno if no descriptor or
// memory is left, and 0 also if there is no such process.
int Qp::check_peer_reachable(std::uint32_t qpn) const {
  const std::uint32_t slot = qpn_slot(qpn);
  for (;; ::sched_yield()) {
    errno = 0;
    if (runtime().peer(slot) != nullptr) return 0;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) return errno;
    if (!runtime().fabric().is_slot_alive(slot)) return 0;
  }
}

// Copies the attributes of the mask; the others keep their values for query().
void Qp::take_attributes(const ibv_qp_attr& attr, int mask) {
  const auto take = [mask](int bit, auto& ours, auto theirs) {
    if ((mask & bit) != 0) ours = theirs;
  };
  take(IBV_QP_PORT, attr_.port_num, attr.port_num);
  take(IBV_QP_PKEY_INDEX, attr_.pkey_index, attr.pkey_index);
  take(IBV_QP_ACCESS_FLAGS, attr_.qp_access_flags, attr.qp_access_flags);
  take(IBV_QP_AV, attr_.ah_attr, attr.ah_attr);
  take(IBV_QP_PATH_MTU, attr_.path_mtu, attr.path_mtu);
  take(IBV_QP_DEST_QPN, attr_.dest_qp_num, attr.dest_qp_num);
  take(IBV_QP_RQ_PSN, attr_.rq_psn, attr.rq_psn & kPsnMask);
  take(IBV_QP_SQ_PSN, attr_.sq_psn, attr.sq_psn & kPsnMask);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, attr_.max_dest_rd_atomic, attr.max_dest_rd_atomic);
  take(IBV_QP_MAX_QP_RD_ATOMIC, attr_.max_rd_atomic, attr.max_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, attr_.min_rnr_timer, attr.min_rnr_timer);
  take(IBV_QP_TIMEOUT, attr_.timeout, attr.timeout);
  take(IBV_QP_RETRY_CNT, attr_.retry_cnt, attr.retry_cnt);
  take(IBV_QP_RNR_RETRY, attr_.rnr_retry, attr.rnr_retry);
  attr_.ah_attr.port_num = attr_.port_num;
}

void Qp::publish_attributes() {
  record_.access.store(attr_.qp_access_flags);
  record_.min_rnr_timer.store(attr_.min_rnr_timer);
  const ibv_qp_state now = state();
  if (now != IBV_QPS_RESET && now != IBV_QPS_INIT) return;  // the rest cannot change once connected
  kill_point_here();
  record_.removals.store(owner_.removals_at_open);
  record_.port = attr_.port_num == 0 ? 0 : attr_.port_num - 1u;
  record_.path_mtu = mtu_bytes(attr_.path_mtu);
  record_.rq_psn = attr_.rq_psn;
  record_.max_dest_rd_atomic = attr_.max_dest_rd_atomic;
  std::memcpy(&record_.dest_gid_high, attr_.ah_attr.grh.dgid.raw, 8);
  std::memcpy(&record_.dest_gid_low, attr_.ah_attr.grh.dgid.raw + 8, 8);
  record_.dest_lid = attr_.ah_attr.dlid;
  record_.dest_is_global = attr_.ah_attr.is_global;
  record_.dest_qpn.store(attr_.dest_qp_num);
}

void Qp::set_state_locked(ibv_qp_state to) {
  if (to == IBV_QPS_ERR) return enter_error_locked();
  std::uint64_t word = record_.state.load();
  if (state_of(word) == IBV_QPS_RTR && to == IBV_QPS_RTS) connection_ = new_connection();
  // If a peer has moved the QP to ERR in the meantime, it stays there.
  while (state_of(word) != IBV_QPS_ERR &&
         !record_.state.compare_exchange(word,
                                         state_word(word >> 8, static_cast<std::uint32_t>(to)))) {
  }
}

void Qp::report_drained_locked() {
  if (!drain_event_wanted_ || state() != IBV_QPS_SQD || !requester_.is_drained()) return;
  drain_event_wanted_ = false;
  send_event(runtime().fabric(), owner_.pipe,
             EventRecord{IBV_EVENT_SQ_DRAINED, index_, record_.serial});
}

// Waits for the peer's requester, removes unpolled completions and empties the queues.
void Qp::reset_locked() {
  const std::uint64_t resets = (record_.state.load() >> 8) + 1;
  record_.state.exchange(state_word(resets, IBV_QPS_RESET));
  const std::uint32_t dest = record_.dest_qpn.load();
  if (dest != 0) wait_for_requester(runtime(), dest);
  record_.dest_qpn.store(0);
  Cq::of(qp_base.send_cq).remove_entries(index_);
  Cq::of(qp_base.recv_cq).remove_entries(index_);
  const std::scoped_lock guard(post_lock_, receive_lock_);
  sends_.clear();
  requester_.restart();
  record_.receives_posted.store(0);
  record_.receives_taken.store(0);
  if (Srq* const srq = shared_queue()) {
    for (const std::uint32_t slot : srq->held_by(qp_num())) srq->give_back(slot);
  }
  record_.shared_receive.store(0);
  record_.bound_to.store(0);
  record_.breaking.store(0);
  receives_retired_.store(0);
  receives_ended_ = 0;
  receives_fenced_ = false;
  drain_event_wanted_ = false;
  attr_ = {};
}

int Qp::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) {
  if (owner_.is_dead()) return EIO;
  (void)finish_error_transition();
  const std::lock_guard guard(run_mutex_);
  attr = attr_;
  attr.qp_state = state();
  attr.cur_qp_state = attr.qp_state;
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.sq_draining = attr.qp_state == IBV_QPS_SQD && !requester_.is_drained() ? 1 : 0;
  attr.cap = init_.cap;
  init = init_;
  qp_base.state = attr.qp_state;
  return 0;
}

}  // namespace softnic
