// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of a path agree on. The connecting side offers what its port has, the accepting
// side chooses for both. No verbs calls: facts in, routes out.
#pragma once

#include <string>

#include "plugin/connect/path/endpoint.h"
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

// Whether this end can or will only be set up by the connection manager.
bool needs_cm(const PortSide& ours) noexcept;

// All but what belongs to the queue pair, and this end's addresses for the connection manager.
wire::PathOffer make_offer(const PortSide& ours);

// The accepting side: whether the connection manager sets up the queue pairs. `peer_host` as below.
bool wants_cm(const PortSide& ours, const wire::PathOffer& offer, const std::string& peer_host);

struct Agreement {
  wire::PathAnswer answer;  // all but what belongs to our queue pair
  Route route;              // ours
};
// The accepting side. The error is a text for people.
Result<Agreement, std::string> agree(const PortSide& ours, const wire::PathOffer& offer,
                                     const std::string& peer_host);
// The same where the connection manager does the rest.
Result<Agreement, std::string> agree_with_cm(const PortSide& ours, const wire::PathOffer& offer,
                                             const std::string& peer_host);

// The connecting side. The error is a text for people: an answer that does not fit what was
// offered.
Result<Route, std::string> route_of(const PortSide& ours, const wire::PathAnswer& answer);

wire::QpFacts qp_facts(const PortSide& ours, const Endpoint& endpoint);

}  // namespace beeline
