// SPDX-License-Identifier: Apache-2.0
// Asynchronous events. Every open device has a named pipe, into which any process writes one record
// for each event. The kernel holds the records, so a writer that dies leaves nothing inconsistent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "softnic/fabric/fabric.h"

namespace softnic {

struct EventRecord {
  std::int32_t type = 0;      // ibv_event_type
  std::uint32_t element = 0;  // port number, or index of the QP or CQ in its owner's arena
  // Distinguishes an object from an earlier one at the same index. For a port or device it is
  // DeviceRecord::removals, because a context gets no events of the device after it came back.
  std::uint64_t serial = 0;
};

struct EventPipe {
  std::uint32_t device = 0;  // index into FabricHeader::devices
  std::uint32_t slot = 0;
  std::uint32_t number = 0;  // one process may open a device several times
};

std::string event_pipe_name(const EventPipe& pipe);
std::optional<EventPipe> parse_event_pipe_name(const std::string& file_name);

// Never blocks. Returns false if the event was dropped, because the reader is gone or has about
// 4000 unread events.
bool send_event(const Fabric& fabric, const EventPipe& pipe, const EventRecord& event);

// Sends the event to every open context of the device, in every process, and logs it. An event of
// the whole device has port number 0. `removals` is DeviceRecord::removals.
void send_port_event(const Fabric& fabric, std::uint32_t device, std::uint32_t port_number,
                     std::uint32_t type, std::uint32_t removals);

}  // namespace softnic
