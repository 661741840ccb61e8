// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/check.h"

#include <cstring>

#include "common/base/log.h"

namespace beeline::verbs {

Errc errc_of(int sys_errno) noexcept {
  switch (sys_errno) {
    case EINVAL: return Errc::kInvalid;
    case EPERM:
    case EACCES: return Errc::kDenied;
    // The kernel also returns EAGAIN if the limit on locked memory is reached.
    case ENOMEM:
    case EAGAIN: return Errc::kNoMemory;
    case ENOENT:
    case ENODEV:
    case ENODATA:
    case ENXIO: return Errc::kNotFound;
    case EBUSY: return Errc::kBusy;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT: return Errc::kUnsupported;
    // Address resolution had no answer: the peer's address is not reachable.
    case ETIMEDOUT: return Errc::kTimeout;
    default: return Errc::kSystem;
  }
}

void warn_not_freed(const char* what, int rc) noexcept {
  const int sys_errno = rc > 0 ? rc : errno;
  BL_WARN_LIMITED(4, "freeing a %s failed: %s", what, std::strerror(sys_errno));
}

}  // namespace beeline::verbs
