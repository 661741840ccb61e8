// SPDX-License-Identifier: Apache-2.0
//
// The settings of the control plane: the addresses, timeouts and limits that the runtime reads from
// the environment.
#pragma once

#include <chrono>
#include <string>

#include "common/base/port_range.h"
#include "plugin/connect/channel/channels.h"
#include "plugin/connect/comm/comm_slots.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/verbs/cm_api.h"

namespace beeline {

struct ControlOptions {
  std::string interface;       // as in NCCL_SOCKET_IFNAME; empty: any
  std::string family;          // AF_INET, AF_INET6 or empty
  PortRange ports = {};        // on which the process listens
  std::string near_cpus = {};  // processors for the control thread, "0-31,64-95"; empty: any
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds half_open_timeout{};
  std::chrono::milliseconds peer_timeout{};  // silence after which a peer counts as dead
  // The same, while the network may be at fault; 0: for ever.
  std::chrono::milliseconds outage_timeout{};
  bool resume_channels = false;  // dial again when a control channel is lost
  // How long a comm may wait before the log says what for; 0: for ever.
  std::chrono::nanoseconds wait_warning{};
  // A connect of kNoOwner is given up if connect() is not called again for so long. 0: twice
  // connect_timeout, but at least a minute.
  std::chrono::milliseconds forgotten_timeout{};
  CommPlans sender;
  CommPlans receiver;
  QpOptions qp;
  PeerLimits limits = {};
  verbs::CmLibrary* cm_library = nullptr;  // outlives the control plane; null: none
  // Outlives the control plane and its connections. Null: nothing is shown.
  CommSlots* slots = nullptr;
};

}  // namespace beeline
