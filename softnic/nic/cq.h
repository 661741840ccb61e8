// SPDX-License-Identifier: Apache-2.0
// The consuming end of a completion queue.
//
// Threads: any number may poll. poll_lock_ also guards which QPs the entries' indices mean: a QP is
// unlisted only after its entries were removed under it.
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
  // Null with errno set.
  static Cq* create(Context& owner, int capacity, void* user, CompChannel* channel);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  // An ibv_cq is the beginning of an ibv_cq_ex.
  static Cq& of(ibv_cq* cq) noexcept { return of(reinterpret_cast<ibv_cq_ex*>(cq)); }
  static Cq& of(ibv_cq_ex* cq) noexcept { return *static_cast<Cq*>(cq); }
  ibv_cq* plain() noexcept { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }

  int poll(int count, ibv_wc* wc);
  // 0 or an errno. Between a start that answered 0 and end_poll() nobody else takes completions.
  int start_poll();
  int next_poll();
  void end_poll();
  const ibv_wc& current() const noexcept { return current_; }

  // The channel is told of the next completion, or of the next that is solicited or a failure.
  void arm(bool solicited_only);
  // Sees to it that an armed queue is told even if whoever pushed died before it told.
  std::optional<std::int64_t> run_job() override;
  void count_channel_event() noexcept;
  int resize(int capacity);

  // Takes out the unpolled entries of a QP that is going away, or back to RESET.
  void remove_entries(std::uint32_t qp_index);
  // One past the highest unpolled entry of that QP and kind; 0 if there is none.
  std::uint64_t unpolled_up_to(std::uint32_t qp_index, CqeKind kind);
  // The slots of the shared receive queue that unpolled entries of that QP are about.
  std::vector<std::uint32_t> unpolled_shared(std::uint32_t qp_index);

  std::uint32_t index() const noexcept { return index_; }
  CqRecord& record() const noexcept { return record_; }
  std::uint64_t serial() const noexcept { return record_.serial; }
  Context& owner() const noexcept { return owner_; }

  std::atomic<std::uint32_t> users{0};  // QPs attached
  std::uint32_t async_reported = 0;     // events handed out; guarded by ibv_cq_ex::mutex

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
  // Somebody is between start_poll and end_poll. No lock is held so long: a queue pair that breaks
  // meanwhile has to look at its entries here.
  bool iterating_ = false;
  ibv_wc current_{};                  // of start_poll and next_poll
  std::uint32_t channel_events_ = 0;  // handed out; guarded by ibv_cq_ex::mutex
  std::atomic<bool> is_watched_{false};
  std::uint32_t seen_ = 0;  // run_job: the word of the last look, and how often it has stood since
  std::uint32_t looks_ = 0;
  std::uint64_t tail_when_armed_ = 0;  // guarded by poll_lock_
};

}  // namespace softnic
