// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/event_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace softnic {

// The pipe is opened read-write, so that a read does not return end-of-file while there is no
// writer.
beeline::UniqueFd make_event_pipe(const Fabric& fabric, EventPipe& pipe) {
  const PrivateDir& files = fabric.files();
  for (;; ++pipe.number) {
    const std::string name = event_pipe_name(pipe);
    if (::mkfifoat(files.fd(), name.c_str(), 0600) == 0) {
      beeline::UniqueFd events = files.open_file(name, 0);
      if (events) return events;
      const int error = errno;
      remove_event_pipe(fabric, pipe);
      errno = error;
      return {};
    }
    if (errno != EEXIST) return {};
  }
}

void remove_event_pipe(const Fabric& fabric, const EventPipe& pipe) noexcept {
  fabric.files().remove_file(event_pipe_name(pipe));
}

}  // namespace softnic
