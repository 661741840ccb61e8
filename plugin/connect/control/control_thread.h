// SPDX-License-Identifier: Apache-2.0
//
// The thread that a control loop runs on.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "common/base/result.h"
#include "plugin/connect/control/control_loop.h"

namespace beeline {

// Named, on the processors of a list where it may be (near_cpus.h), and deaf to signals: those are
// for the program whose guest we are. `before` is the one that has just left, if any: waiting for
// the last of it is the new thread's business, not the caller's.
Result<std::thread> start_control_thread(std::unique_ptr<ControlLoop> loop, std::thread before,
                                         const std::string& near_cpus);

}  // namespace beeline
