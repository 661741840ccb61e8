// SPDX-License-Identifier: Apache-2.0
// A reliable-connection queue pair in the process that owns it. The part that peers read and write
// is its QpRecord.
//
// Lifecycle: create() -> modify() through the states -> delete, which first waits for requesters in
// both directions.
// Threads: posting takes post_lock_ or receive_lock_. A thread that moves data or changes the state
// holds run_mutex_; functions named *_locked expect it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "softnic/nic/completion_ring.h"
#include "softnic/nic/context.h"
#include "softnic/nic/cq.h"
#include "softnic/nic/engine.h"
#include "softnic/nic/requester.h"
#include "softnic/nic/send_queue.h"
#include "softnic/nic/spin_lock.h"
#include "softnic/nic/srq.h"
#include "softnic/nic/wr_builder.h"

namespace softnic {

class Qp final : public ibv_qp_ex, public Engine::Job {
 public:
  // Returns null and sets errno on failure.
  static Qp* create(Pd& pd, ibv_qp_init_attr_ex& wanted);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  static Qp& of(ibv_qp* qp) noexcept { return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) noexcept { return *static_cast<Qp*>(qp); }

  // Return 0 or an errno, as the verbs of the same names.
  int modify(const ibv_qp_attr& attr, int mask);
  int query(ibv_qp_attr& attr, ibv_qp_init_attr& init);
  // Moves to ERR even if the device refuses that, because the device is being closed.
  void shut_down();
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad);
  int post_whole_batch(const ibv_send_wr* first, std::size_t count);  // all requests or none
  int post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad);

  // Frees the queue entry of a completion that was polled. The caller holds the CQ's poll lock.
  void retire(CqeKind kind, std::uint64_t sequence) noexcept;
  // If a peer or an overrun CQ moves this QP to ERR, completes the move and flushes. Returns false
  // if a peer has announced the move and not made it yet.
  bool finish_error_transition();

  std::optional<std::int64_t> run_job() override;

  // For the requester.
  Runtime& runtime() const noexcept { return *owner_.runtime; }
  QpRecord& record() const noexcept { return record_; }
  const ibv_qp_attr& attr() const noexcept { return attr_; }
  std::uint32_t device() const noexcept { return owner_.device; }
  std::uint32_t index() const noexcept { return index_; }
  std::uint32_t qp_num() const noexcept { return qp_base.qp_num; }
  std::uint32_t pd_number() const noexcept { return record_.pd; }
  std::uint64_t connection() const noexcept { return connection_; }
  ibv_qp_state state() const noexcept {
    return static_cast<ibv_qp_state>(state_of(record_.state.load(std::memory_order_relaxed)));
  }
  std::int64_t scaled(std::int64_t ns) const noexcept {
    return static_cast<std::int64_t>(static_cast<double>(ns) * runtime().clock_scale());
  }
  void push_send_completion(const CqeRecord& entry);
  void enter_error_locked();
  void flush_locked();

  std::uint64_t serial() const noexcept { return record_.serial; }
  WrBuilder& builder() noexcept { return builder_; }
  std::uint32_t async_reported = 0;  // events returned; guarded by qp_base.mutex

 private:
  Qp(Pd& pd, std::uint32_t index, const ibv_qp_init_attr& init) noexcept;
  Srq* shared_queue() const noexcept {
    return qp_base.srq != nullptr ? &Srq::of(qp_base.srq) : nullptr;
  }
  int check_may_send() const;
  int check_peer_reachable(std::uint32_t qpn) const;
  int check_addresses(const ibv_qp_attr& attr, int mask) const;
  void take_attributes(const ibv_qp_attr& attr, int mask);
  void publish_attributes();
  void set_state_locked(ibv_qp_state state);
  void reset_locked();
  void report_drained_locked();
  void kick();
  void find_completed_receives();
  void flush_receives();
  void flush_shared_receives();
  void push_flushed_receive(CqeKind kind, std::uint64_t sequence, std::uint64_t name);
  int append_receive(const ibv_recv_wr& wr);

  Context& owner_;
  Pd& pd_;
  const std::uint32_t index_;
  QpRecord& record_;
  const ibv_qp_init_attr init_;  // with the capacities granted
  ibv_qp_attr attr_{};
  std::uint64_t connection_ = 0;
  bool drain_event_wanted_ = false;  // guarded by run_mutex_

  std::mutex run_mutex_;
  SpinLock post_lock_;
  SendQueue sends_;
  Requester requester_;

  SpinLock receive_lock_;
  std::atomic<std::uint64_t> receives_retired_{0};
  std::uint64_t receives_ended_ = 0;  // in ERR: one past the last receive that has a completion
  bool receives_fenced_ = false;      // in ERR: no peer completes receives any more

  WrBuilder builder_;
};

}  // namespace softnic
