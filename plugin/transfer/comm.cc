// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a comm when something fails. Each cause is decided and logged once, here.
#include "plugin/transfer/comm.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/transfer/verdict.h"

namespace beeline {
namespace {

// How long the control channel has to tell what lies behind a failed completion. A process that
// died or closed is known within milliseconds; the rest is for a machine that has no CPU to spare.
constexpr std::int64_t kGrace = 2 * kNsPerSec;
// How far back the cause of a failed request may lie: with the default of BEELINE_TIMEOUT and
// BEELINE_RETRY_CNT a device gives up after half a minute.
constexpr std::int64_t kLongestRetry = 60 * kNsPerSec;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

}  // namespace

Comm::Comm(std::unique_ptr<Connection> connection, std::uint32_t send_depth,
           const CommOptions& options, StatsSlot stats) noexcept
    : owned_(std::move(connection)),
      connection_(*owned_),
      role_(connection_.role),
      link_(connection_.link.get()),
      alarm_(&link_->state_word()),
      watch_(options.stall_ns),
      stats_(std::move(stats)),
      path_count_(connection_.paths.size()),
      has_more_paths_(path_count_ > 1),
      rails_(wire::rails_of(path_count_)),
      early_done_(options.early_done) {
  for (std::size_t i = 0; i < path_count_; ++i) {
    const PathResources& path = connection_.paths[i];
    states_[i] = {.qp = path.queues.qp.get(),
                  .cq = path.queues.cq.get(),
                  .max_inline = path.queues.max_inline,
                  .lkey = connection_.memory.lkey(i),
                  .send_free = send_depth,
                  .epoch = 0};
  }
}

void Comm::raise_alarm() noexcept {
  // Not the link's own state, which is the control thread's to say.
  static constexpr std::atomic<Link::State> kAlarm{Link::State::kDead};
  alarm_ = &kAlarm;
}

void Comm::collect() {
  Completions completions;
  for (const PathState& path : path_states()) {
    int found = 0;
    do {
      found = look_at(path.cq, completions);
      if (found != 0) absorb(completions.data(), found);
    } while (found == kMostCompletions);
  }
}

Errc Comm::look_closer(const Request& request) {
  if (disturbed()) {
    if (const Status status = examine(); !status) return status.error().code;
  }
  if (request.missing != 0 && watch_.is_due() && (!failed_ || goodbye_seen_)) {
    if (const Status status = look_for_stall(); !status) return status.error().code;
  }
  return Errc::kOk;
}

std::string Comm::name_for_people() const {
  const PathResources& path = connection_.paths.front();
  return format("%s on %s, device %s, %s peer %s", role() == Role::kSend ? "sender" : "receiver",
                host_name().c_str(), label(*path.device).c_str(),
                role() == Role::kSend ? "to" : "from", link_->peer().text().c_str());
}

Ends Comm::ends() const {
  const Device& device = *connection_.paths.front().device;
  return {.here = host_name() + ":" + device.ibdev + ":" + std::to_string(device.port),
          .there = link_->peer().place()};
}

PortReport Comm::report_on_own_port(std::int64_t since_ns) const {
  const PathResources& path = connection_.paths.front();
  return report_on_port(look_at_port(*path.device, path.own), path.own, *path.device->news,
                        since_ns, now_ns());
}

void Comm::suspect(const ibv_wc& failed, const char* doing) {
  stats_.add(Counter::kErrors);
  stats_.record(Event::kCompletionError, failed.status, failed.vendor_err);
  if (failed_) return;  // what follows are flushed requests: the first one knows the cause
  const PathResources& path = connection_.paths.front();
  failed_ = {.doing = doing,
             .status = failed.status,
             .vendor_error = failed.vendor_err,
             .qpn = failed.qp_num,
             .peer_qpn = path.peer_qpn,
             .transport = path.device->transport};
  // The watch may have looked last a long time ago.
  calm_until_ns_ = std::max(watch_.quiet_since_ns(), now_ns() - kLongestRetry);
  raise_alarm();
  patience_ends_ = now_ns() + kGrace;
}

Status Comm::examine() {
  if (!trouble_) return trouble_;
  switch (link_->state()) {
    case Link::State::kDead:
      collect();  // what it sent before it died has arrived
      // A fault of our port that is over has not ended the peer's process.
      return give_up("go on",
                     judge_lost_peer(ends(), link_->cause(), failed_,
                                     report_on_own_port(failed_ ? calm_until_ns_ : now_ns())));
    case Link::State::kDeviceGone: return give_up(Errc::kSystem, "move data", link_->cause());
    case Link::State::kGoodbye: return examine_goodbye();
    case Link::State::kOpen: break;
  }
  if (failed_ && now_ns() > patience_ends_) {
    collect();
    return give_up("move data",
                   judge_request(ends(), *failed_, report_on_own_port(calm_until_ns_)));
  }
  return {};
}

Status Comm::examine_goodbye() {
  if (!goodbye_seen_) {
    goodbye_seen_ = true;
    patience_ends_ = now_ns() + kGrace;
    stats_.record(Event::kPeerBye, 0, link_->peer_settled());
    BL_TRY(settle(link_->peer_settled()));
  }
  if (waits_below(link_->peer_settled()) && now_ns() > patience_ends_) {
    const Verdict lost = {.code = Errc::kPeerClosed,
                          .cause = "data that " + ends().there + " had sent did not arrive"};
    return give_up(
        "finish after the goodbye of the other end",
        failed_ ? judge_request(ends(), *failed_, report_on_own_port(calm_until_ns_)) : lost);
  }
  return {};
}

Errc Comm::may_begin(const char* what, bool* may) {
  if (const Status status = examine(); !status) return status.error().code;
  if (!goodbye_seen_) {
    *may = !failed_;
    return Errc::kOk;
  }
  if (!refusal_logged_) {
    refusal_logged_ = true;
    BL_WARN("%s: %s refused: the peer has closed the connection", name_for_people().c_str(), what);
  }
  return Errc::kPeerClosed;
}

Status Comm::give_up(const char* what, const Verdict& why) {
  if (!trouble_) return trouble_;
  trouble_ = fail(why.code, what);
  raise_alarm();
  stats_.record(Event::kFailed, static_cast<std::uint32_t>(why.code));
  stats_.set_state(SlotState::kFailed);
  BL_WARN("%s: cannot %s: %s", name_for_people().c_str(), what, why.text().c_str());
  link_->send_failure(format("cannot %s: ", what) + why.cause);
  return trouble_;
}

Status Comm::give_up(Errc code, const char* what, const std::string& cause) {
  return give_up(what, {.code = code, .cause = cause});
}

// Where the device retries for ever, or has lost its way, nobody else would ever end the wait.
Status Comm::look_for_stall() {
  stats_.add(Counter::kEmptyTests, StallWatch::kLooks);
  switch (watch_.judge(now_ns())) {
    case StallWatch::Verdict::kCalm: return {};
    case StallWatch::Verdict::kQuiet: return ask_path();
    case StallWatch::Verdict::kStalled: break;
  }
  stats_.record(Event::kTimedOut, 0, static_cast<std::uint64_t>(watch_.limit_ns()));
  const PathResources& path = connection_.paths.front();
  return give_up("move data",
                 judge_stall(ends(),
                             format("nothing has completed for %.1f s (queue pair 0x%x to 0x%x)",
                                    static_cast<double>(watch_.limit_ns()) / 1e9,
                                    path.queues.qp->qp_num, path.peer_qpn),
                             report_on_own_port(watch_.quiet_since_ns())));
}

Status Comm::refused_by_device(int rc, const char* doing) {
  return give_up(Errc::kSystem, doing,
                 "the cause is at " + ends().here + ": " +
                     describe({Errc::kSystem, rc, "the device refused it"}));
}

void Comm::fail_queue() {
  (void)give_up(Errc::kSystem, "go on",
                "the cause is at " + ends().here + ": its completion queue cannot be read");
}

void Comm::break_protocol(const char* what) {
  (void)give_up(Errc::kProtocol, "go on", ends().there + " sent " + what);
}

}  // namespace beeline
