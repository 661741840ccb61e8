// SPDX-License-Identifier: Apache-2.0
//
// The frames of a control channel: the length of the body (4 bytes), the type of the message (2
// bytes), zero (2 bytes), then the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plugin/wire/message_bytes.h"
#include "plugin/wire/message_version.h"

namespace beeline::wire {

enum class MessageType : std::uint16_t {
  kHello = 1,  // the dialing process introduces itself
  kHelloAck,   // the other accepts the channel
  kRefuse,     // the other refuses the channel
  kConnect,    // offers a comm
  kAccept,     // the accepting end is made
  kReady,      // the connecting end is made, too
  kReject,     // an end could not be made, was given up, or has failed
  kGoodbye,    // a comm is closed in good order
  kResume,     // a process whose channel was lost dials again
  kResumeAck,  // the other accepts that the channel goes on
  kStillOpen,  // after that: asks whether the other end of a comm is still open
  kFenced,     // a path of a comm has failed
  kOfferPath,  // then the path is made anew: the sending end offers a queue pair
  kAnswerPath,
  kPathNote,
};
inline constexpr MessageType kLastType = MessageType::kPathNote;

const char* to_string(MessageType type) noexcept;   // "CONNECT"
const char* reading_of(MessageType type) noexcept;  // "read a CONNECT": for an error

inline constexpr std::size_t kFrameHeadBytes = 8;
inline constexpr std::size_t kMaxBodyBytes = 65536;
// The limit for a process that has not introduced itself yet: any process can dial.
inline constexpr std::size_t kMaxHelloBytes = 512;

struct Frame {
  MessageType type = MessageType::kHello;
  Bytes body;
};

Bytes make_frame(MessageType type, const Bytes& body);

// Reads the versions in the body of a HELLO or RESUME, whatever version that has.
Result<VersionRange> hello_versions(ByteView body);

// A message is a struct with kType and fields() (see message_bytes.h).
template <class Message>
Bytes encode(const Message& message) {  // makes a whole frame
  Writer writer;
  writer(message);
  return make_frame(Message::kType, writer.bytes());
}

// decode<Hello>(body). The error is kProtocol: a field is not valid, or bytes are missing or left
// over. For HELLO and RESUME it may also be kUnsupported: no version of the protocol in common, so
// that the other fields are not known; hello_versions() tells the peer's.
template <class Message>
Result<Message> decode(ByteView body) {
  if constexpr (requires { Message::kOtherVersion; }) {
    if (!common_version(BL_TRY(hello_versions(body)), kOurVersions)) {
      return fail(Errc::kUnsupported, Message::kOtherVersion);
    }
  }
  Message message;
  Reader reader(body);
  reader(message);
  if (!reader.is_finished()) return fail(Errc::kProtocol, reading_of(Message::kType));
  return message;
}

// Cuts the bytes of a stream into frames.
class FrameSplitter {
 public:
  void append(ByteView bytes);
  // The next frame; empty if its bytes have not all arrived. kProtocol: unknown type, or a body
  // longer than `most`. A wrong head is an error before the body has arrived.
  Result<std::optional<Frame>> next(std::size_t most = kMaxBodyBytes);
  // Bytes of the frame that is not complete yet.
  std::size_t pending() const noexcept { return bytes_.size() - used_; }

 private:
  Bytes bytes_;
  std::size_t used_ = 0;  // of bytes_, from its start
};

}  // namespace beeline::wire
