// SPDX-License-Identifier: Apache-2.0
//
// Makes the reports of the two ends of a path that has failed (plugin/wire/reports.h), and decides
// from the report of the other end what is sent again. Pure functions: the caller copies what they
// need from the tables of its end, and carries out what they decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plugin/wire/chunks.h"
#include "plugin/wire/reports.h"

namespace beeline {

// --- The receiving end ---

// The path by which a line was granted, if the grant may be lost.
using LineCarrier = std::uint8_t;
inline constexpr LineCarrier kGrantArrived = 0xfe;  // the sender has the line
inline constexpr LineCarrier kGrantLost = 0xff;     // the line has to be written again

// A line in the ring.
struct GrantedLine {
  std::uint32_t position = 0;
  std::uint32_t capacity = 0;
  std::uint64_t address = 0;
  wire::ChunkMask arrived = 0;       // the chunks that have been announced, while it waits
  LineCarrier carrier = 0;           // a path, or one of the values above
  bool waits = false;                // not all of its message has arrived
  bool is_optional = false;          // NCCL looks at the data and does not wait for the request
  bool is_reported_missing = false;  // in a report, wholly or partly
};

// Takes the report. `lines` are all lines in the ring, in any order. Two of their members change:
// `waits` becomes false where the buffer of an optional receive was granted anew, since then NCCL
// has seen the data although its completion is lost. Notices of such a line are ignored from then
// on. `is_reported_missing` is set where data is missing.
// None: more lines are there in part than a sender may have under way, which is an error of the
// protocol.
std::optional<wire::ReceiverReport> take_receiver_report(std::uint32_t next,
                                                         std::span<GrantedLine> lines) noexcept;

// Whether a receive into this buffer has to wait: a part of it was reported missing and will be
// written again, although the caller of an optional receive may have seen the data already.
bool overlaps_reported_line(std::span<const GrantedLine> lines, std::uint64_t address,
                            std::uint32_t capacity) noexcept;

// For the lines that were granted over `path`: sets `carrier` to kGrantArrived or kGrantLost. No
// other line may be written again: one that the sender holds, or that another path carries, could
// arrive once more after the next line of its place.
void resolve_grants(const wire::SenderReport& report, LineCarrier path,
                    std::span<GrantedLine> lines) noexcept;

// --- The sending end ---

// Takes the report. `is_held(position)` says whether the ring has that line, complete.
template <class IsHeld>
wire::SenderReport take_sender_report(std::uint32_t taken, IsHeld&& is_held) {
  wire::SenderReport report = {.taken = taken, .held = {}};
  for (std::uint32_t i = 0; i < wire::kMaxLines; ++i) {
    if (is_held(taken + i)) report.held.add(taken + i);
  }
  return report;
}

// The chunks of one message that were given to the path.
struct CarriedChunks {
  std::uint32_t position = 0;  // of the line
  // Those whose notice, or whose write with an immediate, has not completed. A chunk whose write
  // has completed but whose notice has not is one of them.
  wire::ChunkMask chunks = 0;
};

struct ChunkFate {
  wire::ChunkMask arrived = 0;  // only the acknowledgement is lost: as if they had completed
  wire::ChunkMask missing = 0;  // to be sent again, with the same bytes, on any path

  bool operator==(const ChunkFate&) const = default;
};

ChunkFate resolve_chunks(const wire::ReceiverReport& report, CarriedChunks carried) noexcept;

// The lines that the report calls missing, wholly or partly, and that the sender has finished: the
// message has completed and nothing can be sent again. `finished` holds lines before `report.next`.
// Unless the receiver finds their data on another path, a device has lost what it has acknowledged,
// and the comm has to end.
wire::LineSet missing_but_finished(const wire::ReceiverReport& report,
                                   const wire::LineSet& finished) noexcept;

}  // namespace beeline
