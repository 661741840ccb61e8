// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_frame.h"

#include <array>
#include <cstring>

#include "common/check/assert.h"

namespace beeline::wire {
namespace {

struct FrameHead {
  std::uint32_t size = 0;  // of the body
  std::uint16_t type = 0;  // MessageType

  static void fields(auto& io, auto& head) {
    io(head.size);
    io.within(head.type, static_cast<std::uint16_t>(MessageType::kHello),
              static_cast<std::uint16_t>(kLastType));
    io.constant(std::uint16_t{0});
  }
};

// By type. The last word is its name.
constexpr std::array kReadings = {"read a HELLO",       "read a HELLO_ACK",    "read a REFUSE",
                                  "read a CONNECT",     "read an ACCEPT",      "read a READY",
                                  "read a REJECT",      "read a GOODBYE",      "read a RESUME",
                                  "read a RESUME_ACK",  "read a STILL_OPEN",   "read a FENCED",
                                  "read an OFFER_PATH", "read an ANSWER_PATH", "read a PATH_NOTE"};
static_assert(kReadings.size() == static_cast<std::size_t>(kLastType));

}  // namespace

const char* reading_of(MessageType type) noexcept {
  return kReadings[static_cast<std::size_t>(type) - 1];
}

const char* to_string(MessageType type) noexcept {
  const bool is_known = type >= MessageType::kHello && type <= kLastType;
  return is_known ? std::strrchr(reading_of(type), ' ') + 1 : "unknown message";
}

Result<VersionRange> hello_versions(ByteView body) {
  VersionRange versions;
  Reader reader(body);
  reader(versions);
  if (!reader.is_good()) return fail(Errc::kProtocol, "read a HELLO: it is not from Beeline");
  return versions;
}

Bytes make_frame(MessageType type, const Bytes& body) {
  BL_ASSERT(body.size() <= kMaxBodyBytes, "no message is longer than a peer takes");
  Writer writer;
  writer(FrameHead{.size = static_cast<std::uint32_t>(body.size()),
                   .type = static_cast<std::uint16_t>(type)});
  Bytes frame = writer.take();
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

void FrameSplitter::append(ByteView bytes) {
  // Erased here, where less than one frame is left to move.
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Frame>> FrameSplitter::next(std::size_t most) {
  const ByteView there = ByteView(bytes_).subspan(used_);
  if (there.size() < kFrameHeadBytes) return std::optional<Frame>{};
  Reader reader(there.first(kFrameHeadBytes));
  FrameHead head;
  reader(head);
  if (!reader.is_finished())
    return fail(Errc::kProtocol, "read a message: it is not a frame of Beeline");
  const std::size_t size = head.size;
  if (size > most) return fail(Errc::kProtocol, "read a message: too long");
  if (there.size() < kFrameHeadBytes + size) return std::optional<Frame>{};
  const ByteView body = there.subspan(kFrameHeadBytes, size);
  used_ += kFrameHeadBytes + size;
  return std::optional<Frame>(
      Frame{.type = static_cast<MessageType>(head.type), .body = Bytes(body.begin(), body.end())});
}

}  // namespace beeline::wire
