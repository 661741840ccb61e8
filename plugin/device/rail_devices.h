// SPDX-License-Identifier: Apache-2.0
//
// The devices that one end of a comm uses, by rail. Rail i of an end is the i-th of its devices.
#pragma once

#include <span>

#include "plugin/device/device.h"

namespace beeline {

// At least one, and at most wire::kMaxRails. The pointers and what they point to live as long as
// the device table.
using RailDevices = std::span<const Device* const>;

}  // namespace beeline
