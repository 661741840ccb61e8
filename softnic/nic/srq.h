// SPDX-License-Identifier: Apache-2.0
// A shared receive queue: its queue pairs take one receive for each message.
//
// A slot is free, posted, or held by the queue pair whose message it receives. It becomes free
// again when the completion is polled. Threads: any number may post. Peers take receives by
// taken_receive.h.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "softnic/fabric/arena.h"
#include "softnic/nic/context.h"
#include "softnic/nic/spin_lock.h"

namespace softnic {

class Srq final : public ibv_srq {
 public:
  // Returns null and sets errno on failure.
  static Srq* create(Pd& pd, const ibv_srq_init_attr& init);
  ~Srq();
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;
  static Srq& of(ibv_srq* srq) noexcept { return *static_cast<Srq*>(srq); }

  // Return 0 or an errno, as the verbs of the same names.
  int post(ibv_recv_wr* wr, ibv_recv_wr** bad);
  int modify(const ibv_srq_attr& attr, int mask);
  ibv_srq_attr query() const;

  void give_back(std::uint32_t slot);
  // The slots that a queue pair holds: of the message that is arriving, and of completions that
  // were not polled. No peer may be taking receives for it.
  std::vector<std::uint32_t> held_by(std::uint32_t qpn) const;
  std::uint64_t wr_id(std::uint32_t slot) const;

  std::uint32_t index() const noexcept { return index_; }
  std::uint64_t serial() const noexcept { return record_.serial; }
  Pd& owner() const noexcept { return pd_; }

  std::atomic<std::uint32_t> users{0};  // QPs attached
  std::uint32_t async_reported = 0;     // events returned; guarded by ibv_srq::mutex

 private:
  Srq(Pd& domain, std::uint32_t index, const ibv_srq_init_attr& init) noexcept;
  int append(const ibv_recv_wr& wr);
  void drop_if_stale(std::uint32_t slot);
  Runtime& runtime() const noexcept { return *pd_.owner.runtime; }
  const Arena& arena() const noexcept { return runtime().arena(); }

  Pd& pd_;
  const std::uint32_t index_;
  SrqRecord& record_;
  const std::uint32_t max_sge_;
  SpinLock lock_;
  std::vector<std::uint32_t> free_;
};

}  // namespace softnic
