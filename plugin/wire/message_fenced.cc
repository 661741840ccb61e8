// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_fenced.h"

#include "plugin/wire/report_bytes.h"

namespace beeline::wire {
Bytes encode(const Fenced& message) {
  Writer writer;
  writer.number(message.comm);
  writer.number(message.path);
  writer.number(message.generation);
  writer.flag(message.has_peer_report);
  writer.flag(std::holds_alternative<SenderReport>(message.report));
  std::visit([&](const auto& report) { encode(report, writer); }, message.report);
  encode(message.finished, writer);
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
  message.finished = decode_lines(reader);
  const bool may_have_finished =
      message.has_peer_report && std::holds_alternative<SenderReport>(message.report);
  reader.require(message.finished.empty() || may_have_finished);
  if (!reader.is_finished()) return fail(Errc::kProtocol, "read a FENCED");
  return message;
}

}  // namespace beeline::wire
