// SPDX-License-Identifier: Apache-2.0
//
// The agreement of two ends on one path. The connecting end offers everything that its port has,
// and the accepting end chooses for both. These functions make no verbs calls: they compute routes
// from facts about the ports.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "plugin/connect/path/path_setup.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/device/device.h"
#include "plugin/wire/message_path.h"

namespace beeline {

// This end's port.
struct PortSide {
  const Device& device;
  const PortFacts& facts;
  const QpOptions& options;
};

// Whether this end requires the connection manager: iWARP, or by its user's setting.
bool is_cm_required(const PortSide& ours) noexcept;

// Without the facts of the queue pair and the addresses for the connection manager. A problem if
// the port has no partition key of the value that is set.
Outcome<wire::PathOffer> make_offer(const PortSide& ours);

// The accepting end: whether the connection manager sets up the queue pairs.
bool is_cm_used(const PortSide& ours, const wire::PathOffer& offer, const std::string& peer_host);

// RoCE v2 derives the UDP source port of a packet from the flow label, and switches spread flows by
// that port. 20 bits each.
struct FlowLabels {
  std::uint32_t ours = 0;    // in the packets of the accepting end
  std::uint32_t theirs = 0;  // in those of the connecting end
};
// Random ones for the first path of a comm, and from them those of any path. The paths of a comm
// get different UDP ports.
FlowLabels random_flow_labels();
FlowLabels flow_labels_of(const FlowLabels& first, std::uint8_t path) noexcept;

struct Agreement {
  wire::PathAnswer answer;  // without the facts of this end's queue pair
  Route route;              // of this end
};
// The accepting end.
Outcome<Agreement> agree(const PortSide& ours, const wire::PathOffer& offer,
                         const std::string& peer_host, const FlowLabels& labels);
// The same for queue pairs that the connection manager sets up: it chooses addresses and
// partitions.
Outcome<Agreement> agree_with_cm(const PortSide& ours, const wire::PathOffer& offer,
                                 const std::string& peer_host);

// The connecting end. An error means that the answer does not fit the offer.
Outcome<Route> route_of(const PortSide& ours, const wire::PathAnswer& answer);

wire::QpFacts qp_facts(const PortSide& ours, const PathSetup& path);

}  // namespace beeline
