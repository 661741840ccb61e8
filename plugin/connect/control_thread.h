// SPDX-License-Identifier: Apache-2.0
//
// The thread that a control loop runs on.
#pragma once

#include <memory>
#include <thread>

#include "plugin/base/result.h"
#include "plugin/connect/control_loop.h"

namespace beeline {

// Named, and deaf to signals: those are for the program whose guest we are.
Result<std::thread> start_control_thread(std::unique_ptr<ControlLoop> loop);

}  // namespace beeline
