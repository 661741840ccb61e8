// SPDX-License-Identifier: Apache-2.0
// The consuming end of a completion queue.
//
// Threads: any number may poll. poll_lock_ also guards which QPs the entries' indices mean: a QP is
// unlisted only after its entries were removed under it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "softnic/fabric/arena.h"
#include "softnic/nic/context.h"
#include "softnic/nic/spin_lock.h"

namespace softnic {

class Cq : public ibv_cq {
 public:
  // Null with errno set.
  static Cq* create(Context& owner, int capacity, void* user);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  static Cq& of(ibv_cq* cq) noexcept { return *static_cast<Cq*>(cq); }

  int poll(int count, ibv_wc* wc);

  // Takes out the unpolled entries of a QP that is going away, or back to RESET.
  void remove_entries(uint32_t qp_index);
  // One past the highest unpolled entry of that QP and kind; 0 if there is none.
  uint64_t unpolled_up_to(uint32_t qp_index, CqeKind kind);

  uint32_t index() const noexcept { return index_; }
  CqRecord& record() const noexcept { return record_; }
  uint64_t serial() const noexcept { return record_.serial; }
  Context& owner() const noexcept { return owner_; }

  std::atomic<uint32_t> users{0};  // QPs attached
  uint32_t async_reported = 0;     // events handed out; guarded by ibv_cq::mutex

 private:
  Cq(Context& owner, uint32_t index, int entries, void* user) noexcept;
  int take_locked(int count, ibv_wc* wc);
  int break_users();

  Context& owner_;
  const uint32_t index_;
  CqRecord& record_;
  SpinLock poll_lock_;
};

}  // namespace softnic
