// SPDX-License-Identifier: Apache-2.0
//
// Starts the thread that runs a control loop.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "common/base/result.h"
#include "plugin/connect/control/control_loop.h"

namespace beeline {

// The thread has a name, blocks all signals, which are for the application's own threads, and runs
// on the processors of the list as far as it may (near_cpus.h). `before` is the previous control
// thread, if any: the new thread joins it, so that the caller does not wait.
Result<std::thread> start_control_thread(std::unique_ptr<ControlLoop> loop, std::thread before,
                                         const std::string& near_cpus);

}  // namespace beeline
