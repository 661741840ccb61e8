// SPDX-License-Identifier: Apache-2.0
//
// The reports of a comm that cannot simply go on. This floor only detects. plugin/recovery asks
// the engine (plugin/repair) what to do, logs the cause and tells the peer.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "plugin/transfer/path.h"
#include "plugin/transfer/stall_watch.h"

namespace beeline {

class Comm;

// A line whose message has not arrived, and the path by which it was granted.
struct AwaitedLine {
  std::uint32_t position = 0;
  std::uint8_t path = 0;

  bool operator==(const AwaitedLine&) const = default;
};

// One object for each comm. Threads: that of the comm's data path, or the one that closes the comm.
// Whoever wants to be asked again raises the alarm of the comm's gate.
class PathEvents {
 public:
  PathEvents(const PathEvents&) = delete;
  PathEvents& operator=(const PathEvents&) = delete;

  // A work request of the path has failed. `doing` says what it was for, as in "send".
  virtual void on_failed_request(Comm& comm, const Path& path, const ibv_wc& failed,
                                 const char* doing) = 0;
  // The device did not accept a work request. `rc` is its errno.
  virtual Errc on_refused(Comm& comm, const Path& path, int rc, const char* doing) = 0;
  // The path's completion queue cannot be read.
  virtual void on_unreadable_queue(Comm& comm, const Path& path) = 0;
  // The peer sent `what`, as in "a credit line that belongs to no receive".
  virtual void on_protocol_error(Comm& comm, const char* what) = 0;
  // This end cannot go on for a reason of its own.
  virtual Errc on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) = 0;

  // While the comm is alarmed: each test of an unfinished request, and each iflush. An error says
  // that the comm has ended; ok, that requests under way may still finish.
  virtual Status on_alarm(Comm& comm) = 0;
  // While the comm is alarmed: each isend and irecv. `*may` says whether it may begin; if it may
  // not and the answer is ok, NCCL calls again.
  virtual Errc on_call_while_alarmed(Comm& comm, const char* call, bool* may) = 0;
  // Only with several paths: a test has found nothing, now and then.
  virtual void on_waiting(Comm& comm, std::int64_t now_ns) = 0;
  // Tests have found nothing for a while. Not called for StallWatch::Verdict::kCalm.
  virtual Status on_quiet(Comm& comm, StallWatch::Verdict verdict) = 0;

 protected:
  PathEvents() = default;
  ~PathEvents() = default;
};

}  // namespace beeline
