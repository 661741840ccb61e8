// SPDX-License-Identifier: Apache-2.0
// `softnic log`. Following the log means reading it every 50 ms, because the processes that append
// to it do not notify its readers.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "softnic/cli/common.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/fabric_log.h"

namespace softnic::cli {
namespace {

// Prints the part of the log that was written after the last call. Returns an errno.
int copy_new(int from, int to) {
  char text[1 << 14];
  for (ssize_t got; (got = ::read(from, text, sizeof text)) > 0;)
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(to, text + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno != EINTR) return errno;
      done += std::max<ssize_t>(put, 0);
    }
  return 0;
}

bool is_unlinked(int fd) {
  struct stat facts = {};
  return ::fstat(fd, &facts) != 0 || facts.st_nlink == 0;
}

}  // namespace

int copy_log(const Fabric& fabric, int to) {
  const beeline::UniqueFd from = fabric.files().open_file("log", 0);
  return from ? copy_new(from.get(), to) : errno;
}

int log(const std::string& name, bool follow) {
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return report_error(fabric.error().text);
  const beeline::UniqueFd fd = fabric->files().open_file("log", 0);
  if (!fd) return report_error("cannot read " + log_path(*fabric) + ": " + std::strerror(errno));
  bool removed = false;
  int error = 0;
  do {
    removed = is_unlinked(fd.get());  // checked before the read, so that the last lines are printed
    error = copy_new(fd.get(), STDOUT_FILENO);
    const timespec pause{0, 50 * beeline::kNsPerMs};
    if (follow && !removed) ::nanosleep(&pause, nullptr);
  } while (follow && !removed && error == 0);
  return 0;
}

}  // namespace softnic::cli
