// SPDX-License-Identifier: Apache-2.0
#include "tests/support/peer_frame.h"
#include "tests/support/peer_group.h"

namespace beeline::test {

Peer::Peer(UniqueFd line, size_t rank, size_t count)
    : line_(std::move(line)), rank_(rank), count_(count), inbox_(count) {}

void Peer::send_bytes(size_t to, const std::string& bytes) {
  BL_MUST(to < count_ && bytes.size() + sizeof(Head) <= kMaxFrame);
  BL_MUST(send_frame(line_.get(), {FrameKind::kMessage, static_cast<uint32_t>(to)}, bytes));
}

std::string Peer::receive_bytes(size_t from) {
  std::deque<std::string>& box = inbox_.at(from);
  while (box.empty()) read_one();
  std::string bytes = std::move(box.front());
  box.pop_front();
  return bytes;
}

void Peer::read_one() {
  Frame frame;
  if (!receive_frame(line_.get(), &frame)) throw MustError("the group is being ended");
  if (frame.head.kind == FrameKind::kAnswer) {
    ++answers_;
  } else {
    inbox_.at(frame.head.peer).push_back(std::move(frame.body));
  }
}

void Peer::meet() {
  BL_MUST(send_frame(line_.get(), {FrameKind::kMeet, 0}, {}));
  while (answers_ == 0) read_one();
  --answers_;
}

void Peer::kill(size_t victim) {
  BL_MUST(send_frame(line_.get(), {FrameKind::kKill, static_cast<uint32_t>(victim)}, {}));
  while (answers_ == 0) read_one();
  --answers_;
}

void Peer::report_done() { send_frame(line_.get(), {FrameKind::kDone, 0}, {}); }

void Peer::report_failure(const std::string& why) {
  send_frame(line_.get(), {FrameKind::kFailed, 0}, why);
}

}  // namespace beeline::test
