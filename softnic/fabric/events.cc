// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

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

void send_event(const std::string& dir, const EventPipe& pipe, const EventRecord& event) {
  const std::string path = event_pipe_path(dir, pipe);
  // Read-write: a reader that dies meanwhile must not cost the writer a SIGPIPE.
  const beeline::UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return;  // the device is closed
  kill_point_here();
  // Shorter than PIPE_BUF, so it is written whole or not at all.
  (void)!::write(fd.get(), &event, sizeof event);
}

void send_port_event(const Fabric& fabric, uint32_t device, uint32_t port_number, int type) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(fabric.dir(), ignored)) {
    const auto pipe = parse_event_pipe_name(entry.path().filename().string());
    if (pipe && pipe->device == device) {
      send_event(fabric.dir(), *pipe, EventRecord{type, port_number, 0});
    }
  }
}

}  // namespace softnic
