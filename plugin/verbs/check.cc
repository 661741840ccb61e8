// SPDX-License-Identifier: Apache-2.0
//
// errno of the RDMA stack, as our codes.
#include "plugin/verbs/check.h"

namespace beeline::verbs {

Errc errc_of(int sys_errno) noexcept {
  switch (sys_errno) {
    case EINVAL: return Errc::kInvalid;
    case EPERM:
    case EACCES: return Errc::kDenied;
    // The kernel says EAGAIN, too, when a limit on locked memory is reached.
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
    // No answer to address resolution: the peer's address is on no reachable network.
    case ETIMEDOUT: return Errc::kTimeout;
    default: return Errc::kSystem;
  }
}

}  // namespace beeline::verbs
