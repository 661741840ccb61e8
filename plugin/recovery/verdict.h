// SPDX-License-Identifier: Apache-2.0
//
// Pure functions that say in a sentence why a connection failed, from the facts that one end knows.
//
// The other end also gets the cause and logs it on its own host. So the sentence names hosts and
// ports and never says "our", "here" or "the peer". It names an end as the cause ("the cause is at
// NAME") only for faults that the other end cannot have caused.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "plugin/device/device.h"
#include "plugin/device/port_report.h"

namespace beeline {

// "node7:mlx5_2:1"
struct Ends {
  std::string here;
  std::string there;
};

struct FailedRequest {
  const char* doing = "";  // "send"
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t vendor_error = 0;
  std::uint32_t qpn = 0;
  std::uint32_t peer_qpn = 0;
  Transport transport = Transport::kRoce;
};

struct Verdict {
  Errc code = Errc::kInternal;  // kPeerClosed: the other end or the network; kSystem: this end
  std::string cause = {};
  std::string advice = {};  // for the reader of the log of this host; may be empty

  std::string text() const { return advice.empty() ? cause : cause + ": " + advice; }
};

// `ours` is the report on this end's port.
Verdict judge_request(const Ends& ends, const FailedRequest& request, const PortReport& ours);
Verdict judge_stall(const Ends& ends, const std::string& stalled, const PortReport& ours);
// `cause` says how the other end ended, and `before` is a request that had failed earlier.
Verdict judge_lost_peer(const Ends& ends, const std::string& cause,
                        const std::optional<FailedRequest>& before, const PortReport& ours);

}  // namespace beeline
