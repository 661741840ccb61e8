// SPDX-License-Identifier: Apache-2.0
//
// Where the control thread gets the facts of a port.
#pragma once

#include "plugin/device/device.h"

namespace beeline {

class PortSource {
 public:
  // Fails once the device is gone. The result is valid until the control thread's next event.
  virtual Result<const PortFacts*> facts(const Device& device) = 0;

 protected:
  ~PortSource() = default;
};

}  // namespace beeline
