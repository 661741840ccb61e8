// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/fd_limit.h"

#include <sys/resource.h>

#include <cerrno>

namespace beeline {

std::string fd_advice(const Error& error) {
  if (error.sys_errno == ENFILE) {
    return "; this host has as many files open as it may: raise the limit with sysctl fs.file-max";
  }
  rlimit limit{};
  if (error.sys_errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return "; this process may have " + std::to_string(limit.rlim_cur) +
         " files open: raise the limit with ulimit -n, up to " + std::to_string(limit.rlim_max) +
         ", or LimitNOFILE= of its service";
}

}  // namespace beeline
