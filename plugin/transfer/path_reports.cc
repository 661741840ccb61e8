// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/path_reports.h"

#include <algorithm>

#include "plugin/wire/credit.h"
#include "plugin/wire/limits.h"

namespace beeline {
namespace {

bool overlap(const GrantedLine& line, std::uint64_t address, std::uint32_t capacity) noexcept {
  // A buffer of no bytes overlaps nothing.
  if (line.capacity == 0 || capacity == 0) return false;
  return line.address < address + capacity && address < line.address + line.capacity;
}

bool is_granted_anew(const GrantedLine& line, std::span<const GrantedLine> lines) noexcept {
  return std::ranges::any_of(lines, [&line](const GrantedLine& later) {
    return wire::is_before(line.position, later.position) &&
           overlap(line, later.address, later.capacity);
  });
}

// The chunks of that line that have arrived.
wire::ChunkMask arrived_of(const wire::ReceiverReport& report, std::uint32_t position) noexcept {
  // The receiver's queue pair was in ERROR when it granted the line.
  if (!wire::is_before(position, report.next)) return 0;
  // Its place in the ring was used again, so all of it has arrived.
  if (!wire::is_in_ring_before(report.next, position)) return ~wire::ChunkMask{0};
  if (report.whole.has(position)) return ~wire::ChunkMask{0};
  for (std::size_t i = 0; i < report.partial_count; ++i) {
    if (report.partial[i].position == position) return report.partial[i].arrived;
  }
  return 0;
}

bool has_line(const wire::SenderReport& report, std::uint32_t position) noexcept {
  if (wire::is_before(position, report.taken)) return true;
  // Lines that were granted after the sender took its report met a queue pair in ERROR.
  return position - report.taken < wire::kMaxLines && report.held.has(position);
}

}  // namespace

std::optional<wire::ReceiverReport> take_receiver_report(std::uint32_t next,
                                                         std::span<GrantedLine> lines) noexcept {
  wire::ReceiverReport report;
  report.next = next;
  // Places that were never used, or whose lines have arrived.
  wire::LineSet waiting;
  for (GrantedLine& line : lines) {
    if (line.waits && line.is_optional && is_granted_anew(line, lines)) line.waits = false;
    if (!line.waits) continue;
    line.is_reported_missing = true;
    waiting.add(line.position);
    if (line.arrived == 0) continue;
    if (report.partial_count == wire::ReceiverReport::kMostPartial) return std::nullopt;
    report.partial[report.partial_count++] = {.position = line.position, .arrived = line.arrived};
  }
  for (std::uint32_t i = 1; i <= wire::kMaxLines; ++i) {
    if (!waiting.has(next - i)) report.whole.add(next - i);
  }
  return report;
}

bool overlaps_reported_line(std::span<const GrantedLine> lines, std::uint64_t address,
                            std::uint32_t capacity) noexcept {
  return std::ranges::any_of(lines, [=](const GrantedLine& line) {
    return line.waits && line.is_reported_missing && overlap(line, address, capacity);
  });
}

void resolve_grants(const wire::SenderReport& report, LineCarrier path,
                    std::span<GrantedLine> lines) noexcept {
  for (GrantedLine& line : lines) {
    if (line.carrier != path) continue;
    line.carrier = has_line(report, line.position) ? kGrantArrived : kGrantLost;
  }
}

ChunkFate resolve_chunks(const wire::ReceiverReport& report, CarriedChunks carried) noexcept {
  const wire::ChunkMask arrived = arrived_of(report, carried.position);
  return {.arrived = carried.chunks & arrived, .missing = carried.chunks & ~arrived};
}

wire::LineSet missing_but_finished(const wire::ReceiverReport& report,
                                   const wire::LineSet& finished) noexcept {
  wire::LineSet found;
  for (std::uint32_t i = 1; i <= wire::kMaxLines; ++i) {
    const std::uint32_t position = report.next - i;
    if (finished.has(position) && !report.whole.has(position)) found.add(position);
  }
  return found;
}

}  // namespace beeline
