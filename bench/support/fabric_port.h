// SPDX-License-Identifier: Apache-2.0
//
// A port of the fabric that we run on, to be switched and shaped from inside a program. Everything
// else in bench/ is plain verbs and knows nothing of softnic.
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
