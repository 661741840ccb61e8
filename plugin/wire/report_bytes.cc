// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/report_bytes.h"

#include <span>

namespace beeline::wire {

void encode(const LineSet& lines, Writer& writer) {
  for (const std::uint64_t word : lines.words()) writer.number(word);
}

LineSet decode_lines(Reader& reader) {
  std::array<std::uint64_t, LineSet::kWords> words{};
  for (std::uint64_t& word : words) word = reader.number<std::uint64_t>();
  return LineSet::of(words);
}

void encode(const ReceiverReport& report, Writer& writer) {
  writer.number(report.next);
  encode(report.whole, writer);
  writer.count(report.partial_count);
  for (const auto& line : std::span(report.partial).first(report.partial_count)) {
    writer.number(line.position);
    writer.number(line.arrived);
  }
}

ReceiverReport decode_receiver_report(Reader& reader) {
  ReceiverReport report;
  report.next = reader.number<std::uint32_t>();
  report.whole = decode_lines(reader);
  report.partial_count = static_cast<std::uint8_t>(reader.count(ReceiverReport::kMostPartial));
  for (auto& line : std::span(report.partial).first(report.partial_count)) {
    line.position = reader.number<std::uint32_t>();
    line.arrived = reader.number<ChunkMask>();
  }
  reader.require(is_consistent(report));
  return report;
}

void encode(const SenderReport& report, Writer& writer) {
  writer.number(report.taken);
  encode(report.held, writer);
}

SenderReport decode_sender_report(Reader& reader) {
  SenderReport report;
  report.taken = reader.number<std::uint32_t>();
  report.held = decode_lines(reader);
  return report;
}

}  // namespace beeline::wire
