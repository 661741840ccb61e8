// SPDX-License-Identifier: Apache-2.0
//
// Calls that the control thread makes later. In the plugin, its poller keeps the timers.
#pragma once

#include <cstdint>
#include <functional>

namespace beeline {

class Timers {
 public:
  // Makes this call once, at this time or later. A timer cannot be canceled: the call has to check
  // whether there is still something to do.
  virtual void at(std::int64_t when_ns, std::function<void()> call) = 0;

 protected:
  ~Timers() = default;
};

}  // namespace beeline
