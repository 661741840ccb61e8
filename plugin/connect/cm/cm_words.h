// SPDX-License-Identifier: Apache-2.0
//
// What to tell people when the connection manager fails: the step, who was concerned, what to do.
#pragma once

#include <string>

#include "common/base/result.h"
#include "plugin/device/device.h"
#include "plugin/verbs/cm_channel.h"
#include "plugin/wire/handle.h"

namespace beeline {

// The two ends of one connection. An address may be unknown.
struct CmEnds {
  const Device* device = nullptr;  // ours
  wire::SocketAddress ours{};
  wire::SocketAddress theirs{};
  std::string peer;  // "h1 siw0"

  // "10.0.0.1 (h0 siw0 on eth2) and 10.0.0.2 (h1 siw0)"
  std::string text() const;
};

std::string no_channel_text(const Error& error);
std::string no_netdev_text(const Device& device);
std::string no_address_text(const Device& device);
std::string listen_failure_text(const Error& error, const Device& device,
                                const wire::SocketAddress& address);
// The kernel chooses the device by the address. Two devices may share an interface.
Result<void, std::string> check_device(const verbs::CmId& id, const Device& device,
                                       const wire::SocketAddress& address);

// "check the route between both (...)"
std::string route_advice(const CmEnds& ends);

// A step that could not even begin.
std::string step_failure_text(const Error& error, const CmEnds& ends);
// An event that is bad news, after `doing`.
std::string event_failure_text(const verbs::CmEvent& event, const char* doing, const CmEnds& ends);

}  // namespace beeline
