// SPDX-License-Identifier: Apache-2.0
//
// The objects that the parts of the control thread share. Each outlives the parts that use it.
#pragma once

#include <memory>

#include "plugin/connect/channel/channels.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/cm/cm_hub.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class PathRemaker;

struct ControlContext {
  const ControlOptions* options = nullptr;
  const ProcessName* self = nullptr;
  std::shared_ptr<ControlMailbox> mailbox;
  Poller* poller = nullptr;
  PortWatch* ports = nullptr;
  Channels* channels = nullptr;
  CmHub* cm = nullptr;
  PathRemaker* remaker = nullptr;
};

}  // namespace beeline
