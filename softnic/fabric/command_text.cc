// SPDX-License-Identifier: Apache-2.0
// Formats a command as `softnic ctl` accepts it, for the log and for plans.
#include <fmt/format.h>

#include "softnic/fabric/event_names.h"
#include "softnic/fabric/port_command.h"
#include "softnic/spec/gid_words.h"
#include "softnic/spec/units.h"
#include "softnic/spec/wc_status.h"

namespace softnic {
namespace {

using Kind = PortCommand::Kind;

std::string gid_change_text(const PortCommand& command) {
  if (!command.gid) return fmt::format("gid={}:none", command.value);
  return fmt::format("gid={}:{}{}{}", command.value, gid_text(*command.gid),
                     command.gid_kind ? "/" : "",
                     command.gid_kind ? gid_kind_name(*command.gid_kind) : "");
}

}  // namespace

std::string command_text(const PortCommand& command) {
  switch (command.kind) {
    case Kind::kDown: return "down";
    case Kind::kUp: return "up";
    case Kind::kRate: return "rate=" + rate_text(command.value);
    case Kind::kLatency: return "latency=" + duration_text(command.value);
    case Kind::kJitter: return "jitter=" + duration_text(command.value);
    case Kind::kLoss: return "loss=" + share_text(command.value);
    case Kind::kSentLoss: return "loss-sent=" + share_text(command.value);
    case Kind::kLossOver: return fmt::format("loss-over={}", command.value);
    case Kind::kBlackHole: return "blackhole";
    case Kind::kPause:
      return command.value == 0 ? "pause" : "pause=" + duration_text(command.value);
    case Kind::kResume: return "resume";
    case Kind::kError:
      return fmt::format("error={}@{}", wc_status_name(command.status), command.value);
    case Kind::kCorrupt: return fmt::format("corrupt@{}", command.value);
    case Kind::kDiscard: return fmt::format("discard={}@{}", command.bytes, command.value);
    case Kind::kGid: return gid_change_text(command);
    case Kind::kPkey: return fmt::format("pkey=0x{:04x}", command.value);
    case Kind::kLid: return fmt::format("lid={}", command.value);
    case Kind::kEvent: return "event=" + event_name(command.status);
    case Kind::kReset: return "reset";
    case Kind::kRemove: return "remove";
    case Kind::kReturn: return "return";
    case Kind::kRefuseErr: return command.value != 0 ? "refuse-err=on" : "refuse-err=off";
    case Kind::kRefuseGpu: return command.value != 0 ? "refuse-gpu=on" : "refuse-gpu=off";
    case Kind::kHideEvents: return command.value != 0 ? "hide-events=on" : "hide-events=off";
    case Kind::kCommandTime: return "command=" + duration_text(command.value);
  }
  return "?";
}

}  // namespace softnic
