// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/control/control_thread.h"

#include <pthread.h>

#include <exception>
#include <system_error>

#include "common/base/blocked_signals.h"
#include "common/base/log.h"
#include "plugin/connect/control/near_cpus.h"

namespace beeline {
namespace {

// An exception that leaves a thread ends the application.
void run_without_throwing(ControlLoop& loop) noexcept {
  try {
    loop.run();
  } catch (const std::exception& error) {
    BL_WARN("the control thread ends, and with it all connections: %s", error.what());
    loop.give_up();
  }
}

}  // namespace

Result<std::thread> start_control_thread(std::unique_ptr<ControlLoop> loop, std::thread before,
                                         const std::string& near_cpus) {
  const BlockedSignals blocked;
  // Shared, so that it survives a failure to start: the destructor of a joinable std::thread ends
  // the program.
  const auto last = std::make_shared<std::thread>(std::move(before));
  try {
    std::thread thread([running = std::move(loop), last, near_cpus]() mutable {
      pthread_setname_np(pthread_self(), "beeline-ctl");
      run_near(near_cpus);
      if (last->joinable()) last->join();
      run_without_throwing(*running);
      running.reset();
    });
    return thread;
  } catch (const std::system_error& error) {
    if (last->joinable()) last->join();
    return fail(Errc::kSystem, "start the control thread", error.code().value());
  }
}

}  // namespace beeline
