// SPDX-License-Identifier: Apache-2.0
//
// The part of a path's state that is needed while the path is made anew, except for what
// RepairEngine decides by: messages and queue pairs that are passed on, and parts of sentences.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plugin/connect/comm/fence_order.h"
#include "plugin/connect/comm/path_resources.h"
#include "plugin/wire/message_remake.h"

namespace beeline {

// The next generation of a path, before it is offered.
struct PreparedPath {
  std::uint32_t generation = 0;
  std::uint32_t peer_qpn = 0;    // of the other end's new queue pair; 0: not known yet
  wire::PathOffer offer = {};    // at the sender
  wire::PathAnswer answer = {};  // at the receiver
  std::uint32_t window_key = 0;  // of this end's window
  bool is_answered = false;      // at the receiver
  std::unique_ptr<PathResources> resources = {};  // null: not ready
};

struct PathRepair {
  using Report = decltype(wire::Fenced::report);

  // --- For sentences ---
  // Why the path has failed, and what each end knows of its own side.
  std::string cause = {};
  wire::PathTrouble trouble = wire::PathTrouble::kNone;
  wire::PathTrouble their_trouble = wire::PathTrouble::kNone;
  // PathNews::place and PathNews::what of the failure.
  std::string place = {};
  std::string what = {};
  // The port of the other end by which the path was made at first.
  std::string first_peer_port = {};
  // The ports of both ends that the path has left.
  std::string left_port = {};
  std::string left_peer_port = {};
  // Since when the data of the comm had stood still when the failure was noticed.
  std::int64_t quiet_since_ns = 0;
  // Why it could not be made anew the last time.
  std::string last_try = {};
  // The last event of a port that was looked at: whose, and when.
  std::pair<const PortHistory*, std::int64_t> port_event = {};

  // --- Messages ---
  // The report of this end about the path, and that of the other end.
  Report ours = {};
  Report theirs = {};
  // Lines whose messages have completed at the sender, although the receiver's report misses them.
  // At the receiver, those before `finished_end`.
  wire::LineSet finished = {};
  std::uint32_t finished_end = 0;
  // For OFFER_PATH or ANSWER_PATH, which may have to be repeated.
  wire::PathOffer offer = {};
  wire::PathAnswer answer = {};
  // The key of this end's window, which goes with either of them.
  std::uint32_t window_key = 0;
  // At the receiver: the port by which the last offer was, and how many offers before it in a row.
  std::pair<std::string, std::uint8_t> offering_port = {};
  std::uint32_t offers_by_port = 0;
  // At the sender: the keys that came with the answer.
  std::optional<wire::LineKeys> line_keys = {};
  // A write of a message to the other end is under way on this path.
  bool writes_in_band = false;

  // --- While the next generation is prepared, before it is offered ---
  std::optional<PreparedPath> prepared = {};

  // --- Orders to the control thread ---
  // The fence, from when it is ordered until its result is taken.
  std::shared_ptr<FenceOrder> fence = {};
  // The new queue pair, from when the control thread has made it until the comm uses it.
  std::unique_ptr<PathResources> made = {};
};

}  // namespace beeline
