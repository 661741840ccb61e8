// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_remake.h"

#include "plugin/wire/report_bytes.h"

namespace beeline::wire {
namespace {

// Without keys there is no `next` either.
void encode(const std::optional<LineKeys>& keys, Writer& writer) {
  writer.flag(keys.has_value());
  if (!keys) return;
  writer.number(keys->next);
  writer.count(keys->keys.size());
  for (const LineKeys::Key& one : keys->keys) {
    writer.number(one.position);
    writer.number(one.key);
  }
}

std::optional<LineKeys> decode_line_keys(Reader& reader) {
  if (!reader.flag()) return std::nullopt;
  LineKeys keys = {.next = reader.number<std::uint32_t>(), .keys = {}};
  keys.keys.resize(reader.count(kMaxLines));
  for (LineKeys::Key& one : keys.keys) {
    one.position = reader.number<std::uint32_t>();
    one.key = reader.number<std::uint32_t>();
  }
  reader.require(is_consistent(keys));
  return keys;
}

template <class Message>
void encode_place(const Message& message, Writer& writer) {
  writer.number(message.comm);
  writer.number(message.path);
  writer.number(message.generation);
}

template <class Message>
Message decode_place(Reader& reader) {
  Message message;
  message.comm = reader.number<std::uint32_t>();
  message.path = reader.within<std::uint8_t>(0, kMaxPaths - 1);
  message.generation = reader.number<std::uint32_t>();
  return message;
}

}  // namespace

Bytes encode(const OfferPath& message) {
  Writer writer;
  encode_place(message, writer);
  encode(message.report, writer);
  encode(message.offer, writer);
  writer.number(message.ring_key);
  return make_frame(OfferPath::kType, writer.bytes());
}

Bytes encode(const AnswerPath& message) {
  Writer writer;
  encode_place(message, writer);
  encode(message.answer, writer);
  encode(message.line_keys, writer);
  return make_frame(AnswerPath::kType, writer.bytes());
}

Bytes encode(const PathNote& message) {
  Writer writer;
  encode_place(message, writer);
  writer.choice(message.news);
  return make_frame(PathNote::kType, writer.bytes());
}

template <>
Result<OfferPath> decode<OfferPath>(ByteView body) {
  Reader reader(body);
  auto message = decode_place<OfferPath>(reader);
  message.report = decode_sender_report(reader);
  message.offer = decode_offer(reader);
  message.ring_key = reader.number<std::uint32_t>();
  if (!reader.is_finished()) return fail(Errc::kProtocol, "read an OFFER_PATH");
  return message;
}

template <>
Result<AnswerPath> decode<AnswerPath>(ByteView body) {
  Reader reader(body);
  auto message = decode_place<AnswerPath>(reader);
  message.answer = decode_answer(reader);
  message.line_keys = decode_line_keys(reader);
  if (!reader.is_finished()) return fail(Errc::kProtocol, "read an ANSWER_PATH");
  return message;
}

template <>
Result<PathNote> decode<PathNote>(ByteView body) {
  Reader reader(body);
  auto message = decode_place<PathNote>(reader);
  message.news = reader.choice(PathNews::kCannotFence);
  if (!reader.is_finished()) return fail(Errc::kProtocol, "read a PATH_NOTE");
  return message;
}

}  // namespace beeline::wire
