// SPDX-License-Identifier: Apache-2.0
//
// The policy for failures: the first one that cannot be explained away ends the comm. Its cause is
// decided here, logged once and sent to the peer, and every later call fails.
//
// A failed completion is only a suspicion at first: the control channel gets a grace period to
// report that the peer's process died, or closed in good order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/recovery/verdict.h"
#include "plugin/transfer/comm.h"

namespace beeline {

// The ports at both ends of one path of the comm.
Ends ends_of(const Comm& comm, std::size_t path);

// One for each comm. Allocates nothing until something fails.
class GiveUp final : public PathEvents {
 public:
  void on_failed_request(Comm& comm, const Path& path, const ibv_wc& failed,
                         const char* doing) override;
  Errc on_refused(Comm& comm, const Path& path, int rc, const char* doing) override;
  void on_unreadable_queue(Comm& comm, const Path& path) override;
  void on_protocol_error(Comm& comm, const char* what) override;
  Errc on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) override;
  Status on_alarm(Comm& comm) override;
  Errc on_call_while_alarmed(Comm& comm, const char* call, bool* may) override;
  void on_waiting(Comm& /*comm*/, std::int64_t /*now_ns*/) override {}
  Status on_quiet(Comm& comm, StallWatch::Verdict verdict) override;

  // The comm has failed.
  bool has_ended() const noexcept { return !end_.has_value(); }
  // A failed completion waits for an explanation.
  bool has_suspicion() const noexcept { return suspicion_.has_value(); }
  bool suspects(std::size_t path) const noexcept { return suspicion_ && suspicion_->path == path; }
  // There is an explanation, and the comm can go on without the path.
  void forget_suspicion_of(std::size_t path) noexcept {
    if (suspects(path)) suspicion_.reset();
  }

 private:
  // The first failed completion.
  struct Suspicion {
    FailedRequest request;
    std::size_t path = 0;              // index in Comm::paths()
    std::int64_t worked_until_ns = 0;  // when data still moved
  };

  Status on_goodbye(Comm& comm);
  // Logs once that `doing` is impossible and why, and tells the peer.
  Status end(Comm& comm, std::size_t path, const char* doing, const Verdict& why);

  Status end_;  // not ok: the comm has ended
  bool goodbye_seen_ = false;
  bool refusal_logged_ = false;
  std::int64_t grace_ends_ns_ = 0;  // of the suspicion, or of the wait for data after a goodbye
  std::optional<Suspicion> suspicion_;
};

}  // namespace beeline
