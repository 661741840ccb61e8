// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_fenced.h"

#include <span>

namespace beeline::wire {
namespace {

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

}  // namespace

Bytes encode(const Fenced& message) {
  Writer writer;
  writer.number(message.comm);
  writer.number(message.path);
  writer.number(message.generation);
  writer.flag(message.has_peer_report);
  writer.flag(std::holds_alternative<SenderReport>(message.report));
  std::visit([&](const auto& report) { encode(report, writer); }, message.report);
  return make_frame(Fenced::kType, writer.bytes());
}

template <>
Result<Fenced> decode<Fenced>(ByteView body) {
  Reader reader(body);
  Fenced message;
  message.comm = reader.number<std::uint32_t>();
  message.path = reader.within<std::uint8_t>(0, kMaxPaths - 1);
  message.generation = reader.number<std::uint32_t>();
  message.has_peer_report = reader.flag();
  if (reader.flag()) {
    message.report = decode_sender_report(reader);
  } else {
    message.report = decode_receiver_report(reader);
  }
  if (!reader.is_finished()) return fail(Errc::kProtocol, "read a FENCED");
  return message;
}

}  // namespace beeline::wire
