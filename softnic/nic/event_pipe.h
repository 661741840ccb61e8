// SPDX-License-Identifier: Apache-2.0
// Creates and removes the named pipes from which this process reads events (fabric/events.h).
#pragma once

#include "common/base/fd.h"
#include "softnic/fabric/events.h"

namespace softnic {

// Creates the pipe with the first free number from pipe.number on, and stores the number. Returns
// an empty descriptor and sets errno on failure.
beeline::UniqueFd make_event_pipe(const Fabric& fabric, EventPipe& pipe);
void remove_event_pipe(const Fabric& fabric, const EventPipe& pipe) noexcept;

}  // namespace softnic
