// SPDX-License-Identifier: Apache-2.0
//
// The four ways in which libibverbs says that a call failed, turned into Result and Status. Nothing
// else in the plugin looks at a verbs return value.
#pragma once

#include <cerrno>

#include "common/base/result.h"

namespace beeline::verbs {

// What an errno from the RDMA stack means to a caller that must decide something.
Errc errc_of(int sys_errno) noexcept;

inline Failure<Error> verbs_failure(int sys_errno, const char* what) noexcept {
  return fail(errc_of(sys_errno), what, sys_errno);
}

// Null and errno: open_device, alloc_pd, create_*, reg_mr. Some providers leave errno at zero.
template <class T>
Result<T*> from_ptr(T* object, const char* what) noexcept {
  if (object != nullptr) return object;
  return verbs_failure(errno != 0 ? errno : EINVAL, what);
}

// The errno itself is returned: modify_qp, query_device, query_port, destroy_*. Some old providers
// return -1 and set errno instead.
inline Status from_errno(int rc, const char* what) noexcept {
  if (rc == 0) return {};
  return verbs_failure(rc > 0 ? rc : errno, what);
}

// -1 and errno: query_gid, query_pkey, get_async_event.
inline Status from_minus_one(int rc, const char* what) noexcept {
  if (rc == 0) return {};
  return verbs_failure(errno, what);
}

// A count, or a negative errno: query_gid_table. (poll_cq too, whose negative has no meaning.)
inline Result<std::size_t> from_count(long rc, const char* what) noexcept {
  if (rc >= 0) return static_cast<std::size_t>(rc);
  return verbs_failure(static_cast<int>(-rc), what);
}

}  // namespace beeline::verbs
