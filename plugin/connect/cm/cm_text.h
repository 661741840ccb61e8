// SPDX-License-Identifier: Apache-2.0
//
// Texts for failures of the connection manager: the step, the two ends, and what to check.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "plugin/device/device.h"
#include "plugin/verbs/cm_channel.h"
#include "plugin/wire/handle.h"

namespace beeline {

// The two ends of one connection. An address is all zero while it is unknown.
struct CmEnds {
  const Device* device = nullptr;  // ours
  wire::SocketAddress ours{};
  wire::SocketAddress theirs{};
  std::string peer;  // "h1 siw0"

  // "10.0.0.1 (h0 siw0 on eth2) and 10.0.0.2 (h1 siw0)"
  std::string text() const;
};

std::string own_name(const Device& device);  // "h0 siw0 on eth2"

std::string no_channel_text(const Error& error);
std::string no_netdev_text(const Device& device);
std::string no_address_text(const Device& device);
std::string listen_failure_text(const Error& error, const Device& device,
                                const wire::SocketAddress& address);
// The kernel chooses the device by the address. If two devices share an interface, that may be the
// wrong one.
Outcome<void> check_device(const verbs::CmId& id, const Device& device,
                           const wire::SocketAddress& address);

// "check the route between both (...)"
std::string route_advice(const CmEnds& ends);

// A call of librdmacm that failed.
std::string step_failure_text(const Error& error, const CmEnds& ends);
// An event that reports a failure. `doing`: "resolving the address of h1 siw0".
std::string event_failure_text(const verbs::CmEvent& event, const std::string& doing,
                               const CmEnds& ends);

}  // namespace beeline
