// SPDX-License-Identifier: Apache-2.0
// What `softnic ctl`, scripts, chaos and tests can do to a port or a device of a running fabric.
// Effective at once: every process reads the port record for every chunk it moves. A process that
// dies half-way through a command leaves it half done; the same command again completes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/problem.h"
#include "softnic/fabric/port_ref.h"

namespace softnic {

struct PortCommand {
  enum class Kind {
    kDown,
    kUp,
    kRate,
    kLatency,
    kJitter,
    kLoss,
    kBlackHole,
    kPause,
    kResume,
    kError,
    kCorrupt,
    kGid,
    kPkey,
    kEvent,
    kReset,
    // These are for the device as a whole.
    kRemove,
    kReturn,
    kRefuseErr,
  };
  Kind kind = Kind::kReset;
  // Bytes per second, nanoseconds, parts per million, the N-th work request from now, the index of
  // a GID, a P_Key, or 1 for on.
  std::uint64_t value = 0;
  std::uint32_t status = 0;  // kError: ibv_wc_status; kEvent: ibv_event_type
  std::optional<std::array<std::uint8_t, 16>> gid = {};  // kGid: empty for an entry that goes
  std::optional<GidKind> gid_kind = {};                  // kGid: empty to keep what the entry has
};

bool is_for_device(PortCommand::Kind kind);

// For a port:
//   down, up            its state, with event and sysfs
//   rate=200M           bytes per second (k M G, decimal), or max
//   latency=50us        one way; ns us ms s
//   jitter=50us         each message takes up to this much longer
//   loss=2.5%           of the pieces that leave or enter; or 100ppm; 0 ends it
//   blackhole           all that enters or leaves is lost, and the port looks up, until resume
//   pause, pause=200ms  nothing moves and nothing times out, until resume or for so long
//   resume              ends blackhole and pause
//   error=STATUS@N      the N-th work request from now fails (retry_exc_err, any case)
//   corrupt@N           the N-th from now delivers wrong bytes
//   gid=3:fe80::1       an entry of the GID table; .../rocev2 says which kind; gid=3:none
//   pkey=0x8001         the one entry of the P_Key table
//   event=lid_change    tells an event, and changes nothing
//   reset               as the fabric file has it, up and undisturbed. Removal and GIDs stay.
// For a device: remove, return, refuse-err=on|off (moving a queue pair to ERR is refused).
beeline::Outcome<PortCommand> parse_port_command(const std::string& text);
std::string command_text(const PortCommand& command);

// A command and whom it is for, read and found possible.
struct Order {
  PortRef where;
  PortCommand command;
};

// `target` as find_port takes it. Fails also where a command for a device names a port, or a GID
// does not fit the table.
beeline::Outcome<Order> read_order(const Fabric& fabric, const std::string& target,
                                   const std::string& text);

// Notes it in the fabric's log and does it. What is not possible there does nothing.
void apply(const Fabric& fabric, PortRef where, const PortCommand& command);
inline void apply(const Fabric& fabric, const Order& order) {
  apply(fabric, order.where, order.command);
}

}  // namespace softnic
