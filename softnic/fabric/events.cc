// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "softnic/fabric/event_names.h"
#include "softnic/fabric/fabric_log.h"

namespace softnic {

std::string event_pipe_path(const std::string& dir, const EventPipe& pipe) {
  return dir + "/ev." + std::to_string(pipe.device) + "." + std::to_string(pipe.slot) + "." +
         std::to_string(pipe.number);
}

std::optional<EventPipe> parse_event_pipe_name(const std::string& file_name) {
  EventPipe pipe;
  int end = 0;
  const int fields =
      std::sscanf(file_name.c_str(), "ev.%u.%u.%u%n", &pipe.device, &pipe.slot, &pipe.number, &end);
  if (fields != 3 || static_cast<size_t>(end) != file_name.size()) return std::nullopt;
  return pipe;
}

bool send_event(const std::string& dir, const EventPipe& pipe, const EventRecord& event) {
  const std::string path = event_pipe_path(dir, pipe);
  // Read-write: a reader that dies meanwhile must not cost the writer a SIGPIPE.
  const beeline::UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;  // the device is closed, or we have no more descriptors
  kill_point_here();
  // Shorter than PIPE_BUF, so it is written whole or not at all.
  return ::write(fd.get(), &event, sizeof event) == sizeof event;
}

void send_port_event(const Fabric& fabric, uint32_t device, uint32_t port_number, uint32_t type,
                     uint32_t life) {
  const EventRecord event{static_cast<int32_t>(type), port_number, life};
  uint32_t listeners = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(fabric.dir(), ignored)) {
    const auto pipe = parse_event_pipe_name(entry.path().filename().string());
    if (!pipe || pipe->device != device) continue;
    send_event(fabric.dir(), *pipe, event);
    ++listeners;
  }
  const std::string words = "told " + event_name(type) + " to " + std::to_string(listeners) +
                            (listeners == 1 ? " open context" : " open contexts");
  if (port_number == 0) {
    note_device(fabric, device, words);
  } else {
    note(fabric, PortRef{device, port_number - 1}, words);
  }
}

}  // namespace softnic
