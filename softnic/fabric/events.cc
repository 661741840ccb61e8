// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "softnic/fabric/event_names.h"
#include "softnic/fabric/fabric_log.h"

namespace softnic {

std::string event_pipe_name(const EventPipe& pipe) {
  return "ev." + std::to_string(pipe.device) + "." + std::to_string(pipe.slot) + "." +
         std::to_string(pipe.number);
}

std::optional<EventPipe> parse_event_pipe_name(const std::string& file_name) {
  EventPipe pipe;
  int end = 0;
  const int fields =
      std::sscanf(file_name.c_str(), "ev.%u.%u.%u%n", &pipe.device, &pipe.slot, &pipe.number, &end);
  if (fields != 3 || static_cast<std::size_t>(end) != file_name.size()) return std::nullopt;
  return pipe;
}

bool send_event(const Fabric& fabric, const EventPipe& pipe, const EventRecord& event) {
  // Opened read-write, so that the writer gets no SIGPIPE if the reader dies.
  const beeline::UniqueFd fd = fabric.files().open_file(event_pipe_name(pipe), O_NONBLOCK);
  if (!fd) return false;  // the device is closed, or this process has no descriptor left
  kill_point_here();
  // A record is shorter than PIPE_BUF, so the write is atomic.
  return ::write(fd.get(), &event, sizeof event) == sizeof event;
}

void send_port_event(const Fabric& fabric, std::uint32_t device, std::uint32_t port_number,
                     std::uint32_t type, std::uint32_t removals) {
  const EventRecord event{static_cast<std::int32_t>(type), port_number, removals};
  std::uint32_t listeners = 0;
  fabric.files().for_each([&](const std::string& name) {
    const auto pipe = parse_event_pipe_name(name);
    if (!pipe || pipe->device != device) return;
    send_event(fabric, *pipe, event);
    ++listeners;
  });
  const std::string words = "sent " + event_name(type) + " to " + std::to_string(listeners) +
                            (listeners == 1 ? " open context" : " open contexts");
  if (port_number == 0) {
    log_device(fabric, device, words);
  } else {
    log_port(fabric, PortRef{device, port_number - 1}, words);
  }
}

}  // namespace softnic
