// SPDX-License-Identifier: Apache-2.0
//
// Sockets that a forked child must not keep. A program may fork after it has connected (a data
// loader's workers, say). As long as such a child holds copies of the channels, the kernel says
// nothing to the peers when the parent dies, and dialers of a dead process wait in vain. So the
// child closes its copies in fork() itself; a program that is executed never sees them anyway.
//
// Process-wide, since fork handlers are.
#pragma once

namespace beeline {

// Any thread. A number beyond the first 65536 is not guarded.
void guard_from_fork(int fd) noexcept;
// Before the descriptor is closed: its number may be another's right after.
void unguard_from_fork(int fd) noexcept;

}  // namespace beeline
