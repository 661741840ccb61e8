// SPDX-License-Identifier: Apache-2.0
// Checks that a call makes first: whether its context is from a parent process, and whether its
// device was removed.
#pragma once

#include <cerrno>

#include "softnic/nic/context.h"

namespace softnic {

// A forked child has copies of its parent's objects and must not destroy the originals.
inline bool is_inherited(ibv_context* context) { return !Context::of(context).runtime->is_ours(); }

// If the device was removed, sets errno to EIO and returns true.
inline bool is_dead(ibv_context* context) {
  if (!Context::of(context).is_dead()) return false;
  errno = EIO;
  return true;
}

// The errno with which a change of an existing object is refused, or 0.
inline int refusal_to_change(ibv_context* context) {
  if (is_inherited(context)) return EINVAL;
  return Context::of(context).is_dead() ? EIO : 0;
}

}  // namespace softnic
