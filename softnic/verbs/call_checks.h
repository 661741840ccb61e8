// SPDX-License-Identifier: Apache-2.0
// Whether a call may still do what it says.
#pragma once

#include <cerrno>

#include "softnic/nic/context.h"

namespace softnic {

// A forked child owns copies of its parent's objects, and must not end the originals.
inline bool is_inherited(ibv_context* context) { return !Context::of(context).runtime->is_ours(); }

// The device was removed: nothing new can be made in it. Sets errno.
inline bool is_dead(ibv_context* context) {
  if (!Context::of(context).is_dead()) return false;
  errno = EIO;
  return true;
}

// The errno with which a change to something that exists is refused; 0 if it is not.
inline int refusal_to_change(ibv_context* context) {
  if (is_inherited(context)) return EINVAL;
  return Context::of(context).is_dead() ? EIO : 0;
}

}  // namespace softnic
