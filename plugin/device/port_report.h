// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether a local port may be the cause of a failed connection. It queries the device, so
// it must not be called on the data path.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/device/gid.h"
#include "plugin/device/port_news.h"

namespace beeline {

struct Device;

// The entries of the port's tables that a queue pair uses, with their values when it was connected.
// Empty: the plugin did not choose them, or there are none.
struct OwnAddress {
  struct GidPlace {
    std::uint16_t index = 0;
    Gid gid = {};
  };
  struct PkeyPlace {
    std::uint16_t index = 0;
    std::uint16_t pkey = 0;
  };
  std::optional<GidPlace> gid = {};
  std::optional<PkeyPlace> pkey = {};
  std::uint16_t lid = 0;  // 0: RoCE
};

// The current values of these entries. Empty: the device could not be queried.
struct PortNow {
  std::optional<ibv_port_state> state = {};
  std::uint16_t lid = 0;
  std::optional<Gid> gid = {};
  std::optional<std::uint16_t> pkey = {};
};
PortNow look_at_port(const Device& device, const OwnAddress& own);

// If both are empty, there is no sign of a fault of the port.
struct PortReport {
  std::string trouble = {};  // "its port is DOWN": reason enough for a connection to fail
  std::string remark = {};   // "the GID table changed 0.2 s ago": may have to do with it
};
// Faults that ended before `since_ns`, when data still moved, do not count.
PortReport report_on_port(const PortNow& port, const OwnAddress& own, const PortNews& news,
                          std::int64_t since_ns, std::int64_t now_ns);

}  // namespace beeline
