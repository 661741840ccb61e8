// SPDX-License-Identifier: Apache-2.0
// The reading end of a pipe that any process of the fabric may write events into (fabric/events.h).
#pragma once

#include "common/base/fd.h"
#include "softnic/fabric/events.h"

namespace softnic {

// Makes the pipe, at the first number from pipe.number on that is free. Empty, with errno set, if
// that fails.
beeline::UniqueFd make_event_pipe(const Fabric& fabric, EventPipe& pipe);
void remove_event_pipe(const Fabric& fabric, const EventPipe& pipe) noexcept;

}  // namespace softnic
