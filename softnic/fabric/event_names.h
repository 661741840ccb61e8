// SPDX-License-Identifier: Apache-2.0
// Names of the asynchronous events of ports and devices: "lid_change" for IBV_EVENT_LID_CHANGE.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/fabric/fabric.h"

namespace softnic {

// Ignores case and an IBV_EVENT_ prefix.
beeline::Outcome<std::uint32_t> parse_event_name(const std::string& text);

std::string event_name(std::uint32_t type);

// An event of the whole device has no port number.
bool is_device_event(std::uint32_t type);

}  // namespace softnic
