// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/event_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace softnic {

// Read-write, so that the pipe never looks closed while nobody writes.
beeline::UniqueFd make_event_pipe(const Fabric& fabric, EventPipe& pipe) {
  for (;; ++pipe.number) {
    const std::string path = event_pipe_path(fabric.dir(), pipe);
    if (::mkfifo(path.c_str(), 0600) == 0) {
      beeline::UniqueFd events(::open(path.c_str(), O_RDWR | O_CLOEXEC));
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
  ::unlink(event_pipe_path(fabric.dir(), pipe).c_str());
}

}  // namespace softnic
