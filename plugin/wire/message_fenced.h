// SPDX-License-Identifier: Apache-2.0
//
// FENCED: the end that sends it has taken a path of a comm out of use, and reports what it has got
// by it. The other end does the same, and then what is missing goes over the other paths.
//
// message_bytes.h explains fields().
#pragma once

#include <cstdint>
#include <variant>

#include "plugin/wire/message_frame.h"
#include "plugin/wire/reports.h"

namespace beeline::wire {

struct Fenced {
  static constexpr MessageType kType = MessageType::kFenced;
  std::uint32_t comm = 0;
  std::uint8_t path = 0;
  std::uint32_t generation = 0;  // of the path
  bool has_peer_report = false;  // no answer is needed
  std::variant<ReceiverReport, SenderReport> report;
  // Only a sender that has the receiver's report fills this in. It names lines before
  // `report.taken` which that report calls missing, although their messages have completed at the
  // sender, so that nothing is sent again. If their data has not come by another path since, a
  // device has lost what it has acknowledged.
  LineSet finished = {};

  static void fields(auto& io, auto& fenced) {
    io(fenced.comm);
    io.within(fenced.path, 0, kMaxPaths - 1);
    io(fenced.generation, fenced.has_peer_report, fenced.report, fenced.finished);
    io.require(fenced.finished.empty() ||
               (fenced.has_peer_report && std::holds_alternative<SenderReport>(fenced.report)));
  }
  bool operator==(const Fenced&) const = default;
};

}  // namespace beeline::wire
