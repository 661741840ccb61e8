// SPDX-License-Identifier: Apache-2.0
//
// What one run of the simulation does: the hosts, the traffic, and what fails when. A seed draws
// both; a file has the same as text, one fault in a line.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace beeline::simulation {

enum class FaultKind : std::uint8_t {
  kPortDown,      // of nic, with its events
  kPortSilent,    // the same, but the device reports nothing
  kFalseEvent,    // the device reports an error, and nothing has happened
  kOneWay,        // nothing arrives from nic at other
  kBothWays,      // nothing passes between them
  kLoss,          // amount: percent, from nic to other
  kDelay,         // amount: ms at most, from nic to other
  kDoubled,       // amount: percent, from nic to other
  kRemoved,       // the device; it returns at the end of the fault
  kNewAddress,    // of the port, with its event
  kStatus,        // amount: the status with which the next send completes
  kNoErrorState,  // the device refuses to fence
  kNoPosts,       // the device refuses work requests
  kNoQueues,      // the device makes no queue pairs
  kNoFlushes,     // the device swallows receives that are flushed
  kNoReads,       // the device answers no READs
  kControlCut,    // the control channel of host with other
  kControlMute,   // what host says to other waits
  kStopped,       // the process
  kNoCalls,       // NCCL makes no calls for the comm `amount` at this host
  kSlowControl,   // amount: ms for each queue pair that is made
  kKilled,        // the process
  // These break promises of devices and networks, so a violation must follow.
  kDiscards,         // the device acknowledges and places nothing
  kLostCompletions,  // what arrives has no completion
  kFalseFence,       // the device says that a queue pair is in ERROR, and goes on placing
  kNoAccess,         // the device refuses data, as if its buffer was deregistered; comms end
};
inline constexpr std::size_t kFaultKinds = 26;

// Those that no fault of a path causes: the device has no access to the memory, or the other one
// refuses. A comm goes on if another path works and the next attempt of the message does not fail.
inline constexpr std::array<std::uint32_t, 4> kStatusesOfPrograms = {4, 9, 10, 11};

struct Fault {
  std::int64_t at_ns = 0;   // since the start of the run
  std::int64_t for_ns = 0;  // 0: for the rest of the run, or at once
  FaultKind kind = FaultKind::kPortDown;
  std::uint32_t host = 0;
  std::uint32_t nic = 0;
  std::uint32_t other_host = 0;
  std::uint32_t other_nic = 0;
  std::uint32_t amount = 0;
};

struct RunOptions {
  std::uint64_t seed = 1;
  std::uint32_t hosts = 2;
  std::uint32_t nics = 2;         // of each host
  std::uint32_t rails = 2;        // of each comm: the first nics
  std::uint32_t queue_pairs = 1;  // on each rail
  std::uint32_t comms = 2;
  std::uint32_t most_bytes = 64 << 10;
  std::uint32_t groups_at_once = 4;
  std::uint32_t pace_us = 10'000;  // between the groups of a comm
  std::uint32_t poll_ms = 20;      // applications call at least so often
  bool is_gpu = false;
  bool has_immediates = true;  // or a SEND behind the data announces it, as on iWARP
  bool have_standbys_immediates = true;
  // BEELINE_EARLY_DONE: NCCL looks for the data of most receives, and makes no call for them. Not
  // drawn, because a device's report that a credit was lost may then be polled by nobody.
  bool has_early_done = false;
  bool is_by_cm = false;  // the connection manager has connected the paths, as on iWARP
  // 1: the senders register their buffers with the first rail only; 2: the receivers do; 0: nobody.
  std::uint32_t one_railed = 0;
  std::uint32_t missing = 0;   // a bit for each path that is not made at connect
  std::uint32_t timeout = 14;  // of queue pairs: 4.096 us * 2^timeout until a device sends again
  bool has_standbys = true;
  std::int64_t give_up_ns = 0;
  std::int64_t faults_for_ns = 0;  // then all of them end, and everything has to work
  std::vector<Fault> faults;
};

// `weights` of kinds are drawn, too: in some runs a kind never happens.
RunOptions draw_run(std::uint64_t seed);

std::string to_text(const Fault& fault);
std::string to_text(const RunOptions& options);
// Empty: it is not understood, and `why` says what.
std::optional<RunOptions> parse_run(std::string_view text, std::string& why);

std::string_view name_of(FaultKind kind) noexcept;

}  // namespace beeline::simulation
