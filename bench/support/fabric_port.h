// SPDX-License-Identifier: Apache-2.0
//
// A port of the current fabric, which a program can switch and limit. The other benchmarks use
// plain verbs and do not know softnic.
#pragma once

#include <string>

#include "softnic/fabric/port_command.h"

namespace beeline::bench {

class FabricPort {
 public:
  explicit FabricPort(const std::string& name);  // "h0/softnic0"

  // As `softnic ctl` would: "down", "rate=200M".
  void command(const std::string& text);

 private:
  softnic::Fabric fabric_;
  softnic::PortRef port_;
};

}  // namespace beeline::bench
