// SPDX-License-Identifier: Apache-2.0
//
// The end of a comm: the first failure that cannot be explained away ends it. Its cause is decided
// here, logged once and sent to the peer, and every later call fails.
#include <algorithm>
#include <cstdio>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/recovery/recover.h"
#include "plugin/repair/times.h"
#include "plugin/transfer/comm.h"

namespace beeline {
namespace {

// Signs of a fault of the local port, from a query of the device. Faults that ended before
// `since_ns` do not count.
PortReport report_on_own_port(const Comm& comm, std::size_t path, std::int64_t since_ns) {
  const PathResources& resources = *comm.paths()[path].resources;
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
  const Device& device = *comm.paths()[path].resources->device;
  PeerName peer = comm.link().peer();
  const std::string& port = comm.paths()[path].resources->peer_device;
  if (!port.empty()) peer.device = port;
  return {.here = host_name() + ":" + device.ibdev + ":" + std::to_string(device.port),
          .there = peer.place()};
}

// A failed completion that another path would not mend.
void Recover::suspect(Comm& comm, const Path& path, const ibv_wc& failed, const char* doing) {
  comm.stats().record(Event::kCompletionError, failed.status, failed.vendor_err, path.index);
  if (ending_.suspect()) return;  // requests that were flushed after it; only the first knows why
  // The stall watch may have looked last a long time ago.
  const std::int64_t now = now_ns();
  ending_.suspect(path.index, now);
  suspected_ = std::make_unique<Suspected>(Suspected{
      .request = {.doing = doing,
                  .status = failed.status,
                  .vendor_error = failed.vendor_err,
                  .qpn = failed.qp_num,
                  .peer_qpn = path.resources->peer_qpn,
                  .transport = path.resources->device->transport},
      .worked_until_ns = std::max(comm.watch().quiet_since_ns(), now - times::kLongestRetryNs)});
  comm.gate().raise_alarm();
}

Errc Recover::end_on(Comm& comm, const Path& path, const char* doing, const std::string& why) {
  const std::string cause = "the cause is at " + ends_of(comm, path.index).here + ": " + why;
  return end(comm, path.index, doing, {.code = Errc::kSystem, .cause = cause}).error().code;
}

void Recover::on_protocol_error(Comm& comm, const char* what) {
  const std::string cause = ends_of(comm, 0).there + " sent " + what;
  (void)end(comm, 0, "go on", {.code = Errc::kProtocol, .cause = cause});
}

Errc Recover::on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) {
  return end(comm, 0, doing, {.code = code, .cause = cause}).error().code;
}

Status Recover::check_end(Comm& comm) {
  if (!end_) return end_;
  const Link& link = comm.link();
  const std::size_t path = ending_.suspect().value_or(0);
  const std::int64_t now = now_ns();
  Ending::Peer peer = Ending::Peer::kOpen;
  bool waits_for_data = false;
  switch (link.state()) {
    case Link::State::kOpen:
    case Link::State::kPathNews: break;
    case Link::State::kDeviceGone:
      return end(comm, path, "move data", {.code = Errc::kSystem, .cause = link.cause()});
    case Link::State::kDead: peer = Ending::Peer::kDead; break;
    case Link::State::kGoodbye:
      if (const Status status = take_goodbye(comm, now); !status) return status;
      peer = Ending::Peer::kClosed;
      waits_for_data = comm.waits_below(link.peer_settled());
  }
  const Ending::Reason reason = ending_.look(peer, waits_for_data, now);
  if (reason == Ending::Reason::kNone) return {};
  const bool is_closed = peer == Ending::Peer::kClosed;
  if (!is_closed) comm.collect();  // data that the peer sent before it died has arrived
  const char* const doing = is_closed ? "finish after the goodbye of the other end" : "move data";
  const Ends ends = ends_of(comm, path);
  // A fault of this end's port that is over has not ended the peer's process.
  const PortReport port =
      report_on_own_port(comm, path, ending_.suspect() ? suspected_->worked_until_ns : now);
  switch (reason) {
    case Ending::Reason::kNone: break;
    case Ending::Reason::kPeerDied: {
      comm.stats().record(Event::kPeerDied);
      std::optional<FailedRequest> before;
      if (ending_.suspect()) before = suspected_->request;
      return end(comm, path, "go on", judge_lost_peer(ends, link.cause(), before, port));
    }
    case Ending::Reason::kDataMissing:
      return end(comm, path, doing,
                 {.code = Errc::kPeerClosed,
                  .cause = "data that " + ends.there + " had sent did not arrive"});
    case Ending::Reason::kRequestFailed:
      return end(comm, path, doing, judge_request(ends, suspected_->request, port));
  }
  return {};
}

// An error if a request is left that can never finish.
Status Recover::take_goodbye(Comm& comm, std::int64_t now_ns) {
  if (ending_.has_goodbye()) return {};
  const std::uint32_t settled = comm.link().peer_settled();
  ending_.begin_goodbye(now_ns);
  comm.stats().record(Event::kPeerBye, 0, settled);
  if (comm.finish_below(settled)) return {};
  const std::size_t path = ending_.suspect().value_or(0);
  const bool sends = comm.role() == Role::kSend;
  const std::string cause =
      ends_of(comm, path).there + (sends ? " closed the connection before all had arrived"
                                         : " closed the connection while a receive was waiting");
  return end(comm, path, sends ? "send" : "receive", {.code = Errc::kPeerClosed, .cause = cause});
}

Errc Recover::on_call_while_alarmed(Comm& comm, const char* call, bool* may) {
  *may = false;
  if (const Status status = on_alarm(comm); !status) return status.error().code;
  if (!ending_.has_goodbye()) {
    *may = !ending_.suspect();
    return Errc::kOk;
  }
  if (!refusal_logged_) {
    refusal_logged_ = true;
    BL_WARN("%s: %s refused: the peer has closed the connection", comm.name_for_log().c_str(),
            call);
  }
  return Errc::kPeerClosed;
}

// Nothing has moved for a while, and the comm cannot go on without the paths.
Status Recover::end_if_stalled(Comm& comm, StallWatch::Verdict verdict) {
  // While a failure is suspected, the grace period decides.
  if (ending_.suspect() && !ending_.has_goodbye()) return {};
  if (verdict != StallWatch::Verdict::kStalled) return comm.probe_paths();
  const StallWatch& watch = comm.watch();
  comm.stats().record(Event::kTimedOut, 0, static_cast<std::uint64_t>(watch.limit_ns()));
  const std::size_t index = suspect_of_stall(comm, watch.quiet_since_ns());
  const PathResources& path = *comm.paths()[index].resources;
  char stalled[128];
  std::snprintf(stalled, sizeof stalled,
                "nothing has completed for %.1f s (queue pair 0x%x to 0x%x)",
                static_cast<double>(watch.limit_ns()) / 1e9, path.queues.qp->qp_num, path.peer_qpn);
  return end(comm, index, "move data",
             judge_stall(ends_of(comm, index), stalled,
                         report_on_own_port(comm, index, watch.quiet_since_ns())));
}

void Recover::end_for_mute_peer(Comm& comm, std::size_t path) {
  const PeerName& peer = comm.link().peer();
  (void)on_fault(comm, Errc::kPeerClosed, "go on",
                 "path " + std::to_string(path + 1) + " has failed, and " + peer.host + " (pid " +
                     std::to_string(peer.pid) +
                     ") has said nothing about that for BEELINE_PEER_TIMEOUT, although its control "
                     "channel is open: its control thread may hang in a call to its driver, or "
                     "something between both hosts swallows what it sends");
}

void Recover::end_without_path(Comm& comm) {
  const bool is_own_fault = state_->engine.is_any_port_unwell();
  (void)on_fault(comm, is_own_fault ? Errc::kSystem : Errc::kPeerClosed, "go on",
                 describe_outage(comm, ", which is longer than BEELINE_GIVE_UP_AFTER"));
}

Status Recover::end(Comm& comm, std::size_t path, const char* doing, const Verdict& why) {
  if (!end_) return end_;
  end_ = fail(why.code, doing);
  comm.gate().raise_alarm();
  comm.stats().record(Event::kFailed, static_cast<std::uint32_t>(why.code));
  comm.stats().add(Counter::kErrors);
  comm.stats().set_state(SlotState::kFailed);
  comm.link().tell_end(comm.name_for_log(path) + ": cannot " + doing + ": " + why.text());
  comm.link().send_failure(std::string("cannot ") + doing + ": " + why.cause);
  return end_;
}

}  // namespace beeline
