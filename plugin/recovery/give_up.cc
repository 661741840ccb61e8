// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/give_up.h"

#include <algorithm>
#include <cstdio>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/repair/times.h"

namespace beeline {
namespace {

// Signs of a fault of the local port, from a query of the device. Faults that ended before
// `since_ns` do not count.
PortReport report_on_own_port(const Comm& comm, std::size_t path, std::int64_t since_ns) {
  const PathResources& resources = comm.paths()[path].resources;
  return report_on_port(query_own_port(*resources.device, resources.own), resources.own,
                        *resources.device->history, since_ns, now_ns());
}

// The path that a stall is blamed on: the first whose own port is in trouble, or else has work
// under way.
std::size_t suspect_of_stall(const Comm& comm, std::int64_t since_ns) {
  for (std::size_t i = 0; i < comm.paths().size(); ++i) {
    if (!report_on_own_port(comm, i, since_ns).trouble.empty()) return i;
  }
  for (std::size_t i = 0; i < comm.paths().size(); ++i) {
    if (comm.has_sends_under_way(comm.paths()[i])) return i;
  }
  return 0;
}

}  // namespace

Ends ends_of(const Comm& comm, std::size_t path) {
  const Device& device = *comm.paths()[path].resources.device;
  PeerName peer = comm.link().peer();
  const std::string& port = comm.paths()[path].resources.peer_device;
  if (!port.empty()) peer.device = port;
  return {.here = host_name() + ":" + device.ibdev + ":" + std::to_string(device.port),
          .there = peer.place()};
}

void GiveUp::on_failed_request(Comm& comm, const Path& path, const ibv_wc& failed,
                               const char* doing) {
  comm.stats().add(Counter::kErrors);
  comm.stats().record(Event::kCompletionError, failed.status, failed.vendor_err, path.index);
  if (suspicion_) return;  // requests that were flushed after it; only the first knows the cause
  const PathResources& resources = comm.paths()[path.index].resources;
  // The stall watch may have looked last a long time ago.
  const std::int64_t now = now_ns();
  suspicion_ = {
      .request = {.doing = doing,
                  .status = failed.status,
                  .vendor_error = failed.vendor_err,
                  .qpn = failed.qp_num,
                  .peer_qpn = resources.peer_qpn,
                  .transport = resources.device->transport},
      .path = path.index,
      .worked_until_ns = std::max(comm.watch().quiet_since_ns(), now - times::kLongestRetryNs)};
  comm.gate().raise_alarm();
  grace_ends_ns_ = now + times::kGraceNs;
}

Errc GiveUp::on_refused(Comm& comm, const Path& path, int rc, const char* doing) {
  const std::string cause = "the cause is at " + ends_of(comm, path.index).here + ": " +
                            describe({Errc::kSystem, rc, "the device refused it"});
  return end(comm, path.index, doing, {.code = Errc::kSystem, .cause = cause}).error().code;
}

void GiveUp::on_unreadable_queue(Comm& comm, const Path& path) {
  const std::string cause =
      "the cause is at " + ends_of(comm, path.index).here + ": its completion queue cannot be read";
  (void)end(comm, path.index, "go on", {.code = Errc::kSystem, .cause = cause});
}

void GiveUp::on_protocol_error(Comm& comm, const char* what) {
  const std::string cause = ends_of(comm, 0).there + " sent " + what;
  (void)end(comm, 0, "go on", {.code = Errc::kProtocol, .cause = cause});
}

Errc GiveUp::on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) {
  return end(comm, 0, doing, {.code = code, .cause = cause}).error().code;
}

Status GiveUp::on_alarm(Comm& comm) {
  if (!end_) return end_;
  const Link& link = comm.link();
  const std::size_t path = suspicion_ ? suspicion_->path : 0;
  switch (link.state()) {
    case Link::State::kDead: {
      comm.collect();  // data that the peer sent before it died has arrived
      comm.stats().record(Event::kPeerDied);
      // A fault of this end's port that is over has not ended the peer's process.
      const std::int64_t since = suspicion_ ? suspicion_->worked_until_ns : now_ns();
      std::optional<FailedRequest> before;
      if (suspicion_) before = suspicion_->request;
      return end(comm, path, "go on",
                 judge_lost_peer(ends_of(comm, path), link.cause(), before,
                                 report_on_own_port(comm, path, since)));
    }
    case Link::State::kDeviceGone:
      return end(comm, path, "move data", {.code = Errc::kSystem, .cause = link.cause()});
    case Link::State::kGoodbye: return on_goodbye(comm);
    case Link::State::kOpen:
    case Link::State::kPathNews: break;
  }
  if (suspicion_ && now_ns() > grace_ends_ns_) {
    comm.collect();
    return end(comm, path, "move data",
               judge_request(ends_of(comm, path), suspicion_->request,
                             report_on_own_port(comm, path, suspicion_->worked_until_ns)));
  }
  return {};
}

Status GiveUp::on_goodbye(Comm& comm) {
  const std::uint32_t settled = comm.link().peer_settled();
  const std::size_t path = suspicion_ ? suspicion_->path : 0;
  const Ends ends = ends_of(comm, path);
  if (!goodbye_seen_) {
    goodbye_seen_ = true;
    grace_ends_ns_ = now_ns() + times::kGraceNs;
    comm.stats().record(Event::kPeerBye, 0, settled);
    if (!comm.finish_below(settled)) {
      const bool sends = comm.role() == Role::kSend;
      const std::string cause =
          ends.there + (sends ? " closed the connection before all had arrived"
                              : " closed the connection while a receive was waiting");
      return end(comm, path, sends ? "send" : "receive",
                 {.code = Errc::kPeerClosed, .cause = cause});
    }
  }
  if (!comm.waits_below(settled) || now_ns() <= grace_ends_ns_) return {};
  const Verdict lost = {.code = Errc::kPeerClosed,
                        .cause = "data that " + ends.there + " had sent did not arrive"};
  return end(comm, path, "finish after the goodbye of the other end",
             suspicion_ ? judge_request(ends, suspicion_->request,
                                        report_on_own_port(comm, path, suspicion_->worked_until_ns))
                        : lost);
}

Errc GiveUp::on_call_while_alarmed(Comm& comm, const char* call, bool* may) {
  *may = false;
  if (const Status status = on_alarm(comm); !status) return status.error().code;
  if (!goodbye_seen_) {
    *may = !suspicion_;
    return Errc::kOk;
  }
  if (!refusal_logged_) {
    refusal_logged_ = true;
    BL_WARN("%s: %s refused: the peer has closed the connection", comm.name_for_log().c_str(),
            call);
  }
  return Errc::kPeerClosed;
}

Status GiveUp::on_quiet(Comm& comm, StallWatch::Verdict verdict) {
  // While a failure is suspected, the grace period decides.
  if (suspicion_ && !goodbye_seen_) return {};
  if (verdict != StallWatch::Verdict::kStalled) return comm.probe_paths();
  const StallWatch& watch = comm.watch();
  comm.stats().record(Event::kTimedOut, 0, static_cast<std::uint64_t>(watch.limit_ns()));
  const std::size_t index = suspect_of_stall(comm, watch.quiet_since_ns());
  const PathResources& path = comm.paths()[index].resources;
  char stalled[128];
  std::snprintf(stalled, sizeof stalled,
                "nothing has completed for %.1f s (queue pair 0x%x to 0x%x)",
                static_cast<double>(watch.limit_ns()) / 1e9, path.queues.qp->qp_num, path.peer_qpn);
  return end(comm, index, "move data",
             judge_stall(ends_of(comm, index), stalled,
                         report_on_own_port(comm, index, watch.quiet_since_ns())));
}

Status GiveUp::end(Comm& comm, std::size_t path, const char* doing, const Verdict& why) {
  if (!end_) return end_;
  end_ = fail(why.code, doing);
  comm.gate().raise_alarm();
  comm.stats().record(Event::kFailed, static_cast<std::uint32_t>(why.code));
  comm.stats().set_state(SlotState::kFailed);
  BL_WARN("%s: cannot %s: %s", comm.name_for_log(path).c_str(), doing, why.text().c_str());
  comm.link().send_failure(std::string("cannot ") + doing + ": " + why.cause);
  return end_;
}

}  // namespace beeline
