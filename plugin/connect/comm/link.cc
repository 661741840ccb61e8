// SPDX-License-Identifier: Apache-2.0
//
// The name of a peer, as log lines give it.
#include "plugin/connect/comm/link.h"

namespace beeline {

std::string PeerName::text() const {
  std::string name = host + " (pid " + std::to_string(pid) + ")";
  if (!device.empty()) name += " " + device;
  return name;
}

std::string PeerName::place() const { return device.empty() ? host : host + ":" + device; }

}  // namespace beeline
