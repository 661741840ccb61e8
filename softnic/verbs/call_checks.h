// SPDX-License-Identifier: Apache-2.0
// The first steps of a call. It checks whether its context is from a parent process, and whether
// its device was removed. If it is a command of the device, it takes the time that the hazard
// `command` of the fabric or the command of that name sets.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

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

inline void take_command_time(ibv_context* context) {
  const Context& opened = Context::of(context);
  const auto ns = std::max(opened.runtime->header().hazards.command_ns.load(),
                           opened.record().command_ns.load());
  if (ns != 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

}  // namespace softnic
