// SPDX-License-Identifier: Apache-2.0
//
// Determines whether a local port may be the cause of a failed connection. query_own_port() queries
// the device, so it must not be called by a fast function.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/device/gid.h"
#include "plugin/device/port_history.h"

namespace beeline {

struct Device;

// The entries of the port's tables that a queue pair uses, with their values at the time of the
// connection. Empty: the plugin did not choose them, or there are none.
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

// The current values of these entries. Empty: the device did not answer the query.
struct OwnPortState {
  std::optional<ibv_port_state> state = {};
  int query_errno = 0;  // why the port could not be queried
  std::uint16_t lid = 0;
  std::optional<Gid> gid = {};
  std::optional<std::uint16_t> pkey = {};

  bool is_active() const noexcept {
    return state && (*state == IBV_PORT_ACTIVE || *state == IBV_PORT_ACTIVE_DEFER);
  }
};
OwnPortState query_own_port(const Device& device, const OwnAddress& own);

// If both are empty, nothing indicates a fault of the port.
struct PortReport {
  std::string trouble = {};  // "its port is DOWN": a sufficient reason for the failure
  std::string remark = {};   // "the GID table changed 0.2 s ago": a possible reason
};
// Faults that ended before `since_ns` do not count, because data still moved at that time.
PortReport report_on_port(const OwnPortState& port, const OwnAddress& own,
                          const PortHistory& history, std::int64_t since_ns, std::int64_t now_ns);

}  // namespace beeline
