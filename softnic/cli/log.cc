// SPDX-License-Identifier: Apache-2.0
// Copies the log to standard output. Following it is looking again now and then: the file is in
// memory, and whoever appends to it does not know of us.
#include "softnic/cli/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugin/base/clock.h"
#include "plugin/base/fd.h"
#include "softnic/cli/common.h"
#include "softnic/fabric/fabric_log.h"

namespace softnic::cli {
namespace {

void copy_new(int fd) {
  char text[1 << 14];
  for (ssize_t got; (got = ::read(fd, text, sizeof text)) > 0;)
    std::fwrite(text, 1, static_cast<size_t>(got), stdout);
  std::fflush(stdout);
}

bool was_removed(int fd) {
  struct stat facts = {};
  return ::fstat(fd, &facts) != 0 || facts.st_nlink == 0;
}

}  // namespace

int log(const std::string& name, bool follow) {
  const Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return complain(fabric.error());
  const beeline::UniqueFd fd = fabric->files().open_file("log", 0);
  if (!fd) return complain("cannot read " + log_path(*fabric) + ": " + std::strerror(errno));
  bool removed = false;
  do {
    removed = was_removed(fd.get());  // asked first: what was written before is still read
    copy_new(fd.get());
    const timespec pause{0, 50 * beeline::kNsPerMs};
    if (follow && !removed) ::nanosleep(&pause, nullptr);
  } while (follow && !removed && std::ferror(stdout) == 0);
  return 0;
}

}  // namespace softnic::cli
