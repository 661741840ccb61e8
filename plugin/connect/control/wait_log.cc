// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/control/wait_log.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"

namespace beeline {
namespace {

constexpr std::int64_t kMostPeriodNs = kNsPerSec;
constexpr std::int64_t kLeastPeriodNs = kNsPerSec / 10;
constexpr std::int64_t kLooksWithinLimit = 4;

struct LongWait {
  Link* link = nullptr;
  Waiting waiting;

  // The smaller, the nearer to the cause. A wait for the peer only says where to look next.
  auto distance() const noexcept {
    return std::tuple(waiting.what != Wait::kAcknowledgment, waiting.since_ns);
  }
};

std::string seconds(std::int64_t ns) {
  return std::to_string((ns + kNsPerSec / 2) / kNsPerSec) + " s";
}

std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string cause(const LongWait& wait, std::int64_t now_ns) {
  const PeerName& peer = wait.link->peer();
  const std::string time = seconds(now_ns - wait.waiting.since_ns);
  const std::string look = "look at what process " + std::to_string(peer.pid) + " on " + peer.host +
                           " does, and at its log";
  switch (wait.waiting.what) {
    case Wait::kCredit: return "has waited " + time + " for the peer to post a receive: " + look;
    case Wait::kData:
      return "has waited " + time + " for the data of " +
             counted(wait.waiting.requests, "receive") + ": " + look;
    case Wait::kAcknowledgment:
      return "has waited " + time + " for the acknowledgment of " +
             counted(wait.waiting.requests, "send") +
             ", and its device reports no error: look whether process " + std::to_string(peer.pid) +
             " on " + peer.host + " is stopped, and at the counters of both ports";
    case Wait::kTest:
      return "has " + counted(wait.waiting.requests, "open request") +
             ", and the application has made no call for this connection for " + time +
             ": look at what process " + std::to_string(::getpid()) + " on " + host_name() +
             " does";
    case Wait::kNothing:
    case Wait::kPath:
    case Wait::kConnect:  // no comm waits for these
    case Wait::kAccept: break;
  }
  return {};
}

}  // namespace

std::int64_t WaitLog::period_ns() const noexcept {
  if (limit_ns_ == 0) return kMostPeriodNs;
  return std::clamp(limit_ns_ / kLooksWithinLimit, kLeastPeriodNs, kMostPeriodNs);
}

void WaitLog::look(const std::vector<std::shared_ptr<Link>>& links, std::int64_t now_ns) {
  std::vector<LongWait> waits;
  // Whether the application makes calls for any connection. It may wait for one request, and leave
  // others untested meanwhile.
  bool makes_calls = false;
  for (const auto& link : links) {
    const LongWait wait = {link.get(), link->look_at_wait(now_ns)};
    const Waiting& waiting = wait.waiting;
    const bool is_called = waiting.what != Wait::kNothing && waiting.what != Wait::kTest;
    makes_calls = makes_calls || waiting.has_moved || is_called;
    // A connection without a path says that by itself.
    const bool is_known = waiting.what == Wait::kNothing || waiting.what == Wait::kPath;
    if (!is_known && limit_ns_ != 0 && now_ns - waiting.since_ns >= limit_ns_) {
      waits.push_back(wait);
    }
  }
  if (makes_calls) {
    std::erase_if(waits, [](const LongWait& wait) { return wait.waiting.what == Wait::kTest; });
  }
  std::ranges::sort(waits, {}, &LongWait::distance);
  const bool had_logged = !logged_.empty();
  std::erase_if(logged_, [&](const Link* link) {
    return std::ranges::find(waits, link, &LongWait::link) == waits.end();
  });
  if (had_logged && logged_.empty()) {
    BL_WARN("the connections that had waited wait no longer");
  }
  if (waits.empty() || logged_.contains(waits.front().link)) return;
  const std::string name = waits.front().link->user_name();
  if (name.empty()) return;  // it is being closed
  const std::string rest = waits.size() == 1 ? ""
                                             : "; other connections of this process that wait: " +
                                                   std::to_string(waits.size() - 1);
  BL_WARN("%s: %s%s", name.c_str(), cause(waits.front(), now_ns).c_str(), rest.c_str());
  for (const LongWait& wait : waits) logged_.insert(wait.link);
}

}  // namespace beeline
