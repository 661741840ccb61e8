// SPDX-License-Identifier: Apache-2.0
// A completion queue as its owner polls it.
//
// Threads: any number may poll. Entries name their QP by an index; poll_lock_ keeps that index
// valid, because the entries of a QP are removed under it before the QP is removed from the list.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "softnic/fabric/arena.h"
#include "softnic/nic/comp_channel.h"
#include "softnic/nic/context.h"
#include "softnic/nic/engine.h"
#include "softnic/nic/spin_lock.h"

namespace softnic {

class Cq final : public ibv_cq_ex, public Engine::Job {
 public:
  // Returns null and sets errno on failure.
  static Cq* create(Context& owner, int capacity, void* user, CompChannel* channel);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  // An ibv_cq is the beginning of an ibv_cq_ex.
  static Cq& of(ibv_cq* cq) noexcept { return of(reinterpret_cast<ibv_cq_ex*>(cq)); }
  static Cq& of(ibv_cq_ex* cq) noexcept { return *static_cast<Cq*>(cq); }
  ibv_cq* plain() noexcept { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }

  int poll(int count, ibv_wc* wc);
  // 0 or an errno. From a start_poll() that returned 0 until end_poll(), no other thread can poll.
  int start_poll();
  int next_poll();
  void end_poll();
  const ibv_wc& current() const noexcept { return current_; }

  // Requests an event for the next completion, or for the next one that is solicited or a failure.
  void arm(bool solicited_only);
  // Watches an armed queue: sends the event if the process that added a completion died before it
  // did.
  std::optional<std::int64_t> run_job() override;
  void count_channel_event() noexcept;
  int resize(int capacity);

  // Removes the unpolled entries of a QP that is being destroyed or moved to RESET.
  void remove_entries(std::uint32_t qp_index);
  // One past the highest sequence number among unpolled entries of this QP and kind; 0 if none.
  std::uint64_t unpolled_up_to(std::uint32_t qp_index, CqeKind kind);
  // The slots of the shared receive queue in unpolled entries of this QP.
  std::vector<std::uint32_t> unpolled_shared(std::uint32_t qp_index);

  std::uint32_t index() const noexcept { return index_; }
  CqRecord& record() const noexcept { return record_; }
  std::uint64_t serial() const noexcept { return record_.serial; }
  Context& owner() const noexcept { return owner_; }

  std::atomic<std::uint32_t> users{0};  // QPs attached
  std::uint32_t async_reported = 0;     // events returned; guarded by ibv_cq_ex::mutex

 private:
  Cq(Context& owner, std::uint32_t index, int entries, void* user, CompChannel* channel) noexcept;
  void make_progress();
  int take(int count, ibv_wc* wc);
  void copy_arrived_to_gpus();
  void lock_for_polling();
  int take_locked(int count, ibv_wc* wc);
  bool take_current_locked();
  bool begin_iteration();
  bool has_unnotified_completion();
  int move_users_to_error();

  Context& owner_;
  const std::uint32_t index_;
  CqRecord& record_;
  SpinLock poll_lock_;
  // A thread is between start_poll and end_poll. It holds no lock in between, because a QP that
  // moves to ERR must be able to look at its entries.
  bool iterating_ = false;
  ibv_wc current_{};                  // of start_poll and next_poll
  std::uint32_t channel_events_ = 0;  // returned; guarded by ibv_cq_ex::mutex
  std::atomic<bool> is_watched_{false};
  // For run_job: the last value of CqRecord::armed, and for how many runs it has not changed.
  std::uint32_t seen_ = 0;
  std::uint32_t looks_ = 0;
  std::uint64_t tail_when_armed_ = 0;  // guarded by poll_lock_
};

}  // namespace softnic
