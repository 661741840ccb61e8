// SPDX-License-Identifier: Apache-2.0
// The commands that `softnic ctl`, scripts, `softnic chaos` and tests give to a port or a device of
// a running fabric. They take effect at once, because every process reads the port record for every
// piece of a message. If a process dies half-way through a command, repeating it completes it.
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
    kSentLoss,
    kLossOver,
    kBlackHole,
    kPause,
    kResume,
    kError,
    kCorrupt,
    kDiscard,
    kGid,
    kPkey,
    kLid,
    kEvent,
    kReset,
    // The commands from here on are for the whole device.
    kRemove,
    kReturn,
    kRefuseErr,
    kRefuseGpu,
    kHideEvents,
    kCommandTime,
  };
  Kind kind = Kind::kReset;
  // By kind: bytes per second, nanoseconds, parts per million, which work request from now, the
  // index of a GID, a P_Key, a LID, or 1 for "on".
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;   // kDiscard: the longest message that counts
  std::uint32_t status = 0;  // kError: ibv_wc_status; kEvent: ibv_event_type
  std::optional<std::array<std::uint8_t, 16>> gid = {};  // kGid: empty removes the entry
  std::optional<GidKind> gid_kind = {};                  // kGid: empty keeps the entry's type
};

bool is_for_device(PortCommand::Kind kind);

// For a port:
//   down, up            sets the state, sends an event and updates sysfs
//   rate=200M           bytes per second (k M G, decimal), or max
//   latency=50us        one way; ns us ms s
//   jitter=50us         delays each message by a random time up to this
//   loss=2.5%           loses this share (or 100ppm) of sent and received pieces; 0 ends it
//   loss-sent=2.5%      the same, but only of what this port sends
//   loss-over=BYTES     loses all messages that are longer; 0 ends it
//   blackhole           loses all pieces, while the port is reported as up, until resume
//   pause, pause=200ms  stops all data and all timeouts, until resume or for this time
//   resume              ends blackhole and pause
//   error=STATUS@N      makes the N-th work request from now fail (retry_exc_err; case is ignored)
//   corrupt@N           makes the N-th work request from now deliver wrong bytes
//   discard=BYTES@N     makes the N-th send or write of at most BYTES bytes from now succeed
//                       without placing its bytes
//   gid=3:fe80::1       sets an entry of the GID table; .../rocev2 gives its type, none removes it
//   pkey=0x8001         sets the only entry of the P_Key table
//   lid=7               sets the LID of an InfiniBand port
//   event=lid_change    sends an event and changes nothing
//   reset               ends all faults and restores the fabric file's rate and latency; the port
//                       is up. Removal of the device, changed GIDs and LIDs stay.
// For a device: remove, return, refuse-err=on|off (refuses to move a queue pair to ERR),
// refuse-gpu=on|off (refuses to register GPU memory), hide-events=on|off (port events are not
// reported), command=100ms (how long a command takes that creates, changes or destroys an object).
beeline::Outcome<PortCommand> parse_port_command(const std::string& text);
std::string command_text(const PortCommand& command);

// A command and the port or device that it is for. The two were checked against each other.
struct TargetedCommand {
  PortRef where;
  PortCommand command;
};

// Parses both. `target` has the form that find_port takes. Fails also if a command for a device
// names a port, or if a GID is not possible in the table.
beeline::Outcome<TargetedCommand> read_targeted_command(const Fabric& fabric,
                                                        const std::string& target,
                                                        const std::string& text);

// Logs and executes the command. A command that is not possible for its target has no effect.
void apply(const Fabric& fabric, PortRef where, const PortCommand& command);
inline void apply(const Fabric& fabric, const TargetedCommand& command) {
  apply(fabric, command.where, command.command);
}

}  // namespace softnic
