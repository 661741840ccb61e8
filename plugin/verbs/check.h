// SPDX-License-Identifier: Apache-2.0
//
// Converts return values of libibverbs to Result and Status. libibverbs reports errors in four
// different ways; no other code in the plugin checks its return values.
#pragma once

#include <cerrno>

#include "common/base/result.h"

namespace beeline::verbs {

// The kind of error for an errno of the RDMA stack.
Errc errc_of(int sys_errno) noexcept;

inline Failure<Error> verbs_failure(int sys_errno, const char* what) noexcept {
  return fail(errc_of(sys_errno), what, sys_errno);
}

// For calls that return null and set errno: open_device, alloc_pd, create_*, reg_mr. Some providers
// do not set errno.
template <class T>
Result<T*> from_ptr(T* object, const char* what) noexcept {
  if (object != nullptr) return object;
  return verbs_failure(errno != 0 ? errno : EINVAL, what);
}

// For calls that return the errno: modify_qp, query_device, query_port, destroy_*. Some old
// providers return -1 and set errno.
inline Status from_errno(int rc, const char* what) noexcept {
  if (rc == 0) return {};
  return verbs_failure(rc > 0 ? rc : errno, what);
}

// For calls that return -1 and set errno: query_gid, query_pkey, get_async_event.
inline Status from_minus_one(int rc, const char* what) noexcept {
  if (rc == 0) return {};
  return verbs_failure(errno, what);
}

// For calls that return a count, or a negative errno: query_gid_table.
inline Result<std::size_t> from_count(long rc, const char* what) noexcept {
  if (rc >= 0) return static_cast<std::size_t>(rc);
  return verbs_failure(static_cast<int>(-rc), what);
}

// For calls that free an object, and whose caller can do nothing about an error.
void warn_not_freed(const char* what, int rc) noexcept;

}  // namespace beeline::verbs
