// SPDX-License-Identifier: Apache-2.0
//
// Decides when a peer counts as dead whose control channel is lost and which does not answer. The
// fault may be at this end, and many hosts may be cut off at once, as when a switch restarts, so it
// counts what else is heard. Like RepairEngine, this object has no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugin/repair/times.h"

namespace beeline {

class PeerSilence {
 public:
  struct Limits {
    std::int64_t peer_ns = 0;    // BEELINE_PEER_TIMEOUT
    std::int64_t outage_ns = 0;  // BEELINE_GIVE_UP_AFTER; 0: for ever
  };
  struct Facts {
    bool are_own_ports_down = false;  // all of those by which the peer is reached
    bool has_other_hosts = false;     // processes on other hosts than the peer's and this one
    bool hears_others = false;        // of these, one at least
  };
  enum class Verdict : std::uint8_t {
    kWait,
    kWaitForNetwork,  // longer than for a peer: the fault may be at this end, or in the network
    kDead,
    kOutageTooLong,
  };

  // `silent_ns`: what is known already. `progress` counts what has come from the peer by any way.
  void begin(std::int64_t now_ns, std::int64_t silent_ns, std::uint64_t progress) noexcept {
    judged_ns_ = now_ns;
    silent_ns_ = alone_ns_ = silent_ns;
    progress_ = progress;
  }
  // The peer has answered on the channel.
  void heard(std::int64_t now_ns) noexcept {
    silent_ns_ = alone_ns_ = 0;
    judged_ns_ = now_ns;
  }
  // The peer has not answered on the channel since the last look.
  Verdict look(std::int64_t now_ns, std::uint64_t progress, const Limits& limits,
               const Facts& facts) noexcept {
    const std::int64_t passed_ns = std::min(now_ns - judged_ns_, times::kLongestSilenceAtOnceNs);
    judged_ns_ = now_ns;
    silent_ns_ += passed_ns;
    alone_ns_ += passed_ns;
    if (progress != progress_) silent_ns_ = alone_ns_ = 0;
    progress_ = progress;
    const bool may_be_network =
        facts.are_own_ports_down || (facts.has_other_hosts && !facts.hears_others);
    // When the network comes back, some hosts are heard before others.
    if (may_be_network) alone_ns_ = 0;
    if (silent_ns_ < limits.peer_ns) return Verdict::kWait;
    if (!may_be_network) return alone_ns_ < limits.peer_ns ? Verdict::kWait : Verdict::kDead;
    const bool is_over = limits.outage_ns != 0 && silent_ns_ >= limits.outage_ns;
    return is_over ? Verdict::kOutageTooLong : Verdict::kWaitForNetwork;
  }
  // Whether the peer may be counted among those that are heard.
  bool is_short(const Limits& limits) const noexcept { return silent_ns_ < limits.peer_ns / 2; }

 private:
  std::int64_t judged_ns_ = 0;
  std::int64_t silent_ns_ = 0;
  std::int64_t alone_ns_ = 0;  // of that, since the network was last in doubt
  std::uint64_t progress_ = 0;
};

}  // namespace beeline
