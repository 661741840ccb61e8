// SPDX-License-Identifier: Apache-2.0
// The asynchronous events of ports and devices by name: "lid_change" for IBV_EVENT_LID_CHANGE.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/fabric/fabric.h"

namespace softnic {

// Any case, with or without the IBV_EVENT_ in front.
beeline::Outcome<std::uint32_t> parse_event_name(const std::string& text);

std::string event_name(std::uint32_t type);

// About the device as a whole: it carries no port number.
bool is_device_event(std::uint32_t type);

}  // namespace softnic
