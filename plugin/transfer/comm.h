// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of a comm have in common: the connection, its paths, and what is known to be
// wrong.
//
// Threads: isend, irecv, iflush and test of one comm come from one thread; registration comes from
// another at the same time and touches only what is const here. Closing comes when nobody calls
// anything else.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/hot.h"
#include "common/base/result.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/stats/stats_page.h"
#include "plugin/transfer/completions.h"
#include "plugin/transfer/request.h"
#include "plugin/transfer/stall_watch.h"
#include "plugin/transfer/verdict.h"
#include "plugin/wire/credit.h"

namespace beeline {

// How one queue pair stands, as the data thread counts it.
struct PathState {
  ibv_qp* qp = nullptr;
  ibv_cq* cq = nullptr;
  std::uint32_t max_inline = 0;
  std::uint32_t lkey = 0;       // of the comm's own memory
  std::uint32_t send_free = 0;  // work requests that the send queue still takes
  std::uint8_t epoch = 0;       // counts how often the path was re-made
};

struct CommOptions {
  std::size_t routed_above = 0;  // bytes; data on an adaptively routed path gets a notice above it
  std::int64_t stall_ns = 0;     // how long nothing may move before the comm fails; 0: for ever
  bool early_done = false;       // a receive that NCCL need not wait for is done when it is granted
  const gdr::GpuDirect* gpus = nullptr;  // null: there is no GPU memory
  GidPolicy gid = {};                    // of the way to itself, as of connections
  int pkey_index = -1;                   // the same
};

class Comm {
 public:
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Role role() const noexcept { return role_; }
  bool early_done() const noexcept { return early_done_; }
  std::span<const PathResources> paths() const noexcept { return connection_.paths; }

  // Both ends alike, for a request of which something is missing. With `*done` all of it has
  // arrived, or has been sent, and the request is gone. `sizes`: null, or one for each buffer.
  BL_INLINED Errc test(Request& request, int* done, int* sizes);
  // The same for a request of which nothing is missing.
  BL_INLINED void finish(Request& request, int* done, int* sizes) noexcept;

 protected:
  Comm(std::unique_ptr<Connection> connection, std::uint32_t send_depth, const CommOptions& options,
       StatsSlot stats) noexcept;
  ~Comm() = default;

  std::span<PathState> path_states() noexcept { return {states_.data(), path_count_}; }
  PathState& first_path() noexcept { return states_.front(); }
  wire::Rails rails() const noexcept { return rails_; }

  // False while nothing is known to be wrong or over: all that the hot path asks.
  bool disturbed() const noexcept {
    return alarm_->load(std::memory_order_acquire) != Link::State::kOpen;
  }

  // --- The slow path: comm.cc ---

  // The first failed completion raises a suspicion: whether the path, the peer's process or an
  // orderly close is behind it, the control channel tells within a grace period.
  BL_APART void suspect(const ibv_wc& failed, const char* doing);
  // What went wrong for good; ok while requests under way may still finish.
  BL_APART Status examine();
  // Whether a request may begin: not after the peer's goodbye, which is an error, and not now while
  // a failure is suspected.
  BL_APART Errc may_begin(const char* what, bool* may);
  // Logs once that `what` cannot be done and why, tells the peer, and makes every later call fail.
  BL_APART Status give_up(const char* what, const Verdict& why);
  BL_APART Status give_up(Errc code, const char* what, const std::string& cause);
  // By a test that has found nothing, when the watch is due.
  BL_APART Status look_for_stall();
  BL_APART Status refused_by_device(int rc, const char* doing);
  BL_APART void break_protocol(const char* what);
  BL_APART void fail_queue();

  std::string name_for_people() const;
  Ends ends() const;

  // As the control thread has made it. It is destroyed there, too.
  const std::unique_ptr<Connection> owned_;
  Connection& connection_;
  const Role role_;
  Link* link_;  // connection_.link's
  // The link's state; once something is suspected or wrong here, a word that is never kOpen.
  const std::atomic<Link::State>* alarm_;
  FreeRequests free_requests_;
  StallWatch watch_;
  StatsSlot stats_;

  // Takes what lies in the completion queues.
  void collect();

 private:
  // What a look at a completion queue found. Negative: it cannot be read.
  virtual void absorb(const ibv_wc* completions, int found) = 0;
  // The same for a single one, as most are when messages go one by one: that needs no stack.
  virtual void absorb_one(const ibv_wc& completion) = 0;
  // And what may have been left, there or on other paths.
  [[gnu::noinline]] void absorb_all(const Completions& completions, int found) {
    if (found != 0) absorb(completions.data(), found);
    collect();
  }
  BL_APART void raise_alarm() noexcept;
  // What a test that has found nothing asks now and then, or when something is wrong.
  BL_APART Errc look_closer(const Request& request);
  // The peer's goodbye: everything below `settled` is done. Finishes what that finishes.
  virtual Status settle(std::uint32_t settled) = 0;
  // Whether a request below `settled` still waits for the news of it.
  virtual bool waits_below(std::uint32_t settled) const noexcept = 0;
  // Nothing has moved for a while: makes sure that something is under way whose completion would
  // show that the path works.
  virtual Status ask_path() = 0;
  Status examine_goodbye();
  // Signs of a fault of the local port. Faults that ended before `since_ns` do not count. Queries
  // the device.
  PortReport report_on_own_port(std::int64_t since_ns) const;

  std::array<PathState, wire::kMaxRails> states_{};
  std::size_t path_count_ = 0;
  bool has_more_paths_ = false;
  wire::Rails rails_;
  bool early_done_ = false;
  Status trouble_;
  bool goodbye_seen_ = false;
  bool refusal_logged_ = false;
  std::int64_t patience_ends_ = 0;       // of the suspicion, or of the wait behind a goodbye
  std::optional<FailedRequest> failed_;  // the suspicion
  std::int64_t calm_until_ns_ = 0;       // when data still moved, before that
};

BL_INLINED Errc Comm::test(Request& request, int* done, int* sizes) {
  *done = 0;
  Completions completions;
  const int found = look_at(first_path().cq, completions);
  if (found != 0 || has_more_paths_) {
    if (found == 1 && !has_more_paths_) {
      absorb_one(completions[0]);
    } else if (found == kMostCompletions || has_more_paths_) [[unlikely]] {
      absorb_all(completions, found);
    } else {
      absorb(completions.data(), found);
    }
    if (request.missing == 0) {
      finish(request, done, sizes);
      return Errc::kOk;
    }
  }
  const bool is_due = watch_.looks_in_vain();
  if (is_due || disturbed()) [[unlikely]] {
    const Errc code = look_closer(request);
    if (request.missing != 0) return code;
    finish(request, done, sizes);
  }
  return Errc::kOk;
}

BL_INLINED void Comm::finish(Request& request, int* done, int* sizes) noexcept {
  *done = 1;
  if (sizes != nullptr) {
    sizes[0] = static_cast<int>(request.sizes[0]);
    for (std::size_t i = 1; i < request.count; ++i) sizes[i] = static_cast<int>(request.sizes[i]);
  }
  free_requests_.give_back(request);
}

}  // namespace beeline
