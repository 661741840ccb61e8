// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the control thread share. Each of these outlives the parts that use it.
#pragma once

#include <memory>

#include "plugin/connect/channels.h"
#include "plugin/connect/cm_hub.h"
#include "plugin/connect/control_plane.h"
#include "plugin/connect/desk.h"
#include "plugin/connect/identity.h"
#include "plugin/connect/poller.h"
#include "plugin/connect/port_watch.h"

namespace beeline {

struct Room {
  const ControlOptions* options = nullptr;
  const ProcessName* self = nullptr;
  std::shared_ptr<Desk> desk;
  Poller* poller = nullptr;
  PortWatch* ports = nullptr;
  Channels* channels = nullptr;
  CmHub* cm = nullptr;
};

}  // namespace beeline
