// SPDX-License-Identifier: Apache-2.0
// Asynchronous events. Every open device has a FIFO; whoever causes an event writes one record into
// it, from whatever process. The kernel keeps the records, so a dying writer leaves nothing broken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "softnic/fabric/fabric.h"

namespace softnic {

struct EventRecord {
  std::int32_t type = 0;      // ibv_event_type
  std::uint32_t element = 0;  // port number, or index of the QP or CQ in its owner's arena
  // Tells an object from an earlier one at the same index. For a port or device: the device's
  // `removals`, since a context hears nothing of the life that begins when its device is back.
  std::uint64_t serial = 0;
};

struct EventPipe {
  std::uint32_t device = 0;  // index into FabricHeader::devices
  std::uint32_t slot = 0;
  std::uint32_t number = 0;  // one process may open a device several times
};

std::string event_pipe_name(const EventPipe& pipe);
std::optional<EventPipe> parse_event_pipe_name(const std::string& file_name);

// Never blocks: an event for a reader that is gone, or that let 4000 events pile up, is dropped.
// False: it was.
bool send_event(const Fabric& fabric, const EventPipe& pipe, const EventRecord& event);

// To every open context of the device, in every process, and into the fabric's log. An event of the
// device as a whole has port number 0. `life` is the device's `removals`.
void send_port_event(const Fabric& fabric, std::uint32_t device, std::uint32_t port_number,
                     std::uint32_t type, std::uint32_t life);

}  // namespace softnic
