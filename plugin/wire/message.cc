// SPDX-License-Identifier: Apache-2.0
//
// The encoder and the decoder of each message.
#include "plugin/wire/message.h"

#include "plugin/wire/message_fenced.h"
#include "plugin/wire/message_remake.h"

namespace beeline::wire {
namespace {

template <class Message>
Result<Message> read(ByteView body) {
  Message message;
  Reader reader(body);
  reader(message);
  if (!reader.is_finished()) return fail(Errc::kProtocol, Message::kReading);
  return message;
}

// Fails unless the two ends have a version in common: only then are the other fields known.
Status check_versions(ByteView body, const char* what) {
  if (common_version(BL_TRY(hello_versions(body)), kOurVersions)) return {};
  return fail(Errc::kUnsupported, what);
}

}  // namespace

Result<VersionRange> hello_versions(ByteView body) {
  VersionRange versions;
  Reader reader(body);
  reader(versions);
  if (!reader.is_good()) return fail(Errc::kProtocol, "read a HELLO: it is not from Beeline");
  return versions;
}

template <class Message>
Bytes encode(const Message& message) {
  Writer writer;
  writer(message);
  return make_frame(Message::kType, writer.bytes());
}

template <class Message>
Result<Message> decode(ByteView body) {
  return read<Message>(body);
}
template <>
Result<Hello> decode<Hello>(ByteView body) {
  BL_TRY(check_versions(body, "read a HELLO: it is from another version of Beeline"));
  return read<Hello>(body);
}
template <>
Result<Resume> decode<Resume>(ByteView body) {
  BL_TRY(check_versions(body, "read a RESUME: it is from another version of Beeline"));
  return read<Resume>(body);
}

template Bytes encode(const Hello&);
template Bytes encode(const HelloAck&);
template Bytes encode(const Refuse&);
template Bytes encode(const Connect&);
template Bytes encode(const Accept&);
template Bytes encode(const Ready&);
template Bytes encode(const Reject&);
template Bytes encode(const Goodbye&);
template Bytes encode(const Resume&);
template Bytes encode(const ResumeAck&);
template Bytes encode(const StillOpen&);
template Bytes encode(const Fenced&);
template Bytes encode(const OfferPath&);
template Bytes encode(const AnswerPath&);
template Bytes encode(const PathNote&);

template Result<HelloAck> decode<HelloAck>(ByteView);
template Result<Refuse> decode<Refuse>(ByteView);
template Result<Connect> decode<Connect>(ByteView);
template Result<Accept> decode<Accept>(ByteView);
template Result<Ready> decode<Ready>(ByteView);
template Result<Reject> decode<Reject>(ByteView);
template Result<Goodbye> decode<Goodbye>(ByteView);
template Result<ResumeAck> decode<ResumeAck>(ByteView);
template Result<StillOpen> decode<StillOpen>(ByteView);
template Result<Fenced> decode<Fenced>(ByteView);
template Result<OfferPath> decode<OfferPath>(ByteView);
template Result<AnswerPath> decode<AnswerPath>(ByteView);
template Result<PathNote> decode<PathNote>(ByteView);

}  // namespace beeline::wire
