// SPDX-License-Identifier: Apache-2.0
//
// One target for each decoder of plugin/wire.
#pragma once

#include "tests/fuzz/targets.h"

namespace beeline::fuzz {

std::span<const Target> message_targets();  // one for each message: "hello"
std::span<const Target> frame_targets();    // "frames"
std::span<const Target> memory_targets();   // data in memory: "handle", "credit", "immediate"

}  // namespace beeline::fuzz
