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
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plugin/base/result.h"
#include "plugin/connect/connection.h"
#include "plugin/stats/stats_page.h"
#include "plugin/transfer/request.h"
#include "plugin/transfer/stall_watch.h"

namespace beeline {

// How one queue pair stands, as the data thread counts it.
struct PathState {
  ibv_qp* qp = nullptr;
  ibv_cq* cq = nullptr;
  std::uint32_t max_inline = 0;
  std::uint32_t lkey = 0;            // of the comm's own memory
  std::uint32_t send_free = 0;       // work requests that the send queue still takes
  std::uint32_t receives_ready = 0;  // posted, not yet consumed
  std::uint8_t epoch = 0;            // counts how often the path was re-made
};

struct CommOptions {
  std::size_t routed_above = 0;  // bytes; data on an adaptively routed path gets a notice above it
  std::int64_t stall_ns = 0;     // how long nothing may move before the comm fails; 0: for ever
};

class Comm {
 public:
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Role role() const noexcept { return connection_.role; }
  std::span<const Path> paths() const noexcept { return connection_.paths; }

 protected:
  Comm(Connection&& connection, std::uint32_t send_depth, const CommOptions& options,
       StatsSlot stats) noexcept;
  ~Comm() = default;

  std::span<PathState> path_states() noexcept { return {states_.data(), path_count_}; }

  // False while nothing is known to be wrong or over: all that the hot path asks.
  bool disturbed() const noexcept {
    return suspected_ || !trouble_ || link_->state() != Link::State::kOpen;
  }

  // --- The slow path: comm.cc ---

  // The first failed completion raises a suspicion: whether the path, the peer's process or an
  // orderly close is behind it, the control channel tells within a grace period.
  void suspect(const ibv_wc& failed, const char* doing);
  // What went wrong for good; ok while requests under way may still finish.
  Status examine();
  // Whether a request may begin: not after the peer's goodbye, and not now while a failure is
  // suspected.
  Result<bool> may_begin(const char* what);
  // Logs the cause, once, and makes every later call fail.
  Status give_up(Errc code, const char* what, const std::string& cause);
  // By a test that finds nothing, when the watch is due.
  Status look_for_stall();
  Status refused_by_device(int rc, const char* doing);
  void break_protocol(const char* what);
  void fail_queue();

  std::string name_for_people() const;

  Connection connection_;
  Link* link_;  // connection_.link's
  StatsSlot stats_;
  StallWatch watch_;

 private:
  // Takes what lies in the completion queues.
  virtual void collect() = 0;
  // The peer's goodbye: everything below `settled` is done. Finishes what that finishes.
  virtual Status settle(std::uint32_t settled) = 0;
  // Whether a request below `settled` still waits for the news of it.
  virtual bool waits_below(std::uint32_t settled) const noexcept = 0;
  // Nothing has moved for a while: makes sure that something is under way whose completion would
  // show that the path works.
  virtual Status ask_path() = 0;
  Status examine_goodbye();

  std::array<PathState, wire::kMaxRails> states_{};
  std::size_t path_count_ = 0;
  Status trouble_;
  bool suspected_ = false;
  bool goodbye_seen_ = false;
  bool refusal_logged_ = false;
  std::int64_t patience_ends_ = 0;  // of the suspicion, or of the wait behind a goodbye
  Errc suspected_code_ = Errc::kOk;
  std::string suspicion_;
};

}  // namespace beeline
