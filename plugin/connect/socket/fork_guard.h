// SPDX-License-Identifier: Apache-2.0
//
// Closes sockets in forked children. An application may fork after it has connected, for example to
// start the workers of a data loader. While such a child has copies of the channels, the kernel
// does not tell the peers when the parent dies, and dials to the dead parent wait in vain. So the
// child closes its copies inside fork(). Programs that are executed never get them.
//
// The state is process-wide, as fork handlers are.
#pragma once

namespace beeline {

// Any thread may call these. Descriptors above 65535 are not guarded.
void guard_from_fork(int fd) noexcept;
// Before the descriptor is closed, because its number may be used again at once.
void unguard_from_fork(int fd) noexcept;

}  // namespace beeline
