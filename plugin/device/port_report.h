// SPDX-License-Identifier: Apache-2.0
//
// What this host knows of one of its own ports when a connection over it has failed: whether the
// port itself may be the cause. It asks the device, so it is not for the data path.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/device/gid.h"
#include "plugin/device/port_news.h"

namespace beeline {

struct Device;

// By which entries of its port's tables a queue pair sends, and what they held when it was
// connected. Empty: they were not chosen by us, or there are none.
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

// The same entries as they are now. Empty: the device did not tell.
struct PortNow {
  std::optional<ibv_port_state> state = {};
  std::uint16_t lid = 0;
  std::optional<Gid> gid = {};
  std::optional<std::uint16_t> pkey = {};
};
PortNow look_at_port(const Device& device, const OwnAddress& own);

// Both empty: nothing is known against the port.
struct PortReport {
  std::string trouble = {};  // "its port is DOWN": reason enough for a connection to fail
  std::string remark = {};   // "the GID table changed 0.2 s ago": may have to do with it
};
// What ended before `since_ns`, when data still moved, does not count.
PortReport report_on_port(const PortNow& port, const OwnAddress& own, const PortNews& news,
                          std::int64_t since_ns, std::int64_t now_ns);

}  // namespace beeline
