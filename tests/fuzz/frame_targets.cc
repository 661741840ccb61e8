// SPDX-License-Identifier: Apache-2.0
//
// The byte stream of a control channel. However the network splits it, the frames must be the same,
// and only a part of one frame may be buffered.
//
// The first byte of an input sets the size of the pieces, the second the limit on frames. The rest
// is the stream.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/fuzz/wire_targets.h"
#include "tests/support/wire_samples.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::wire;

constexpr std::size_t kHeadBytes = 2;  // of an input

struct Cut {
  std::vector<Frame> frames;
  bool is_broken = false;
  std::size_t pending = 0;
};

// Takes all complete frames. Returns false if the stream is invalid.
bool drain(FrameSplitter& splitter, std::size_t most, std::vector<Frame>& frames) {
  for (;;) {
    auto frame = splitter.next(most);
    if (!frame) return false;
    if (!*frame) return true;
    hold((*frame)->body.size() <= most, "no frame is longer than it may be");
    hold(std::strcmp(to_string((*frame)->type), "unknown message") != 0, "a type with a name");
    frames.push_back(*std::move(*frame));
  }
}

Cut cut(ByteView stream, std::size_t piece, std::size_t most) {
  Cut result;
  FrameSplitter splitter;
  while (!stream.empty() && !result.is_broken) {
    const std::size_t size = std::min(piece, stream.size());
    splitter.append(stream.first(size));
    stream = stream.subspan(size);
    result.is_broken = !drain(splitter, most, result.frames);
    hold(result.is_broken || splitter.pending() < kFrameHeadBytes + most,
         "less than a frame is kept");
  }
  result.pending = splitter.pending();
  return result;
}

bool is_same(const Frame& a, const Frame& b) { return a.type == b.type && a.body == b.body; }

bool take(ByteView bytes) {
  if (bytes.size() < kHeadBytes) return false;
  const std::size_t piece = 1 + std::to_integer<std::size_t>(bytes[0]);
  const std::size_t most = bytes[1] == std::byte{0} ? kMaxHelloBytes : kMaxBodyBytes;
  const ByteView stream = bytes.subspan(kHeadBytes);
  const Cut small = cut(stream, piece, most);
  const Cut whole = cut(stream, stream.size() + 1, most);
  hold(small.is_broken == whole.is_broken, "a stream is broken however it is cut");
  hold(std::equal(small.frames.begin(), small.frames.end(), whole.frames.begin(),
                  whole.frames.end(), is_same),
       "the same frames however it is cut");
  Bytes again;
  for (const Frame& frame : whole.frames) {
    const Bytes one = make_frame(frame.type, frame.body);
    again.insert(again.end(), one.begin(), one.end());
  }
  hold(again.size() + whole.pending == stream.size(), "no byte is lost");
  hold(std::equal(again.begin(), again.end(), stream.begin()), "the same bytes");
  return !whole.is_broken && !whole.frames.empty();
}

Bytes with_head(std::uint8_t piece, std::uint8_t limit, const std::vector<Bytes>& frames) {
  Bytes input = {std::byte{piece}, std::byte{limit}};
  for (const Bytes& frame : frames) input.insert(input.end(), frame.begin(), frame.end());
  return input;
}

std::vector<Bytes> seeds() {
  const Bytes hello = encode(test::sample<Hello>());
  const Bytes connect = encode(test::sample<Connect>());
  const Bytes ready = encode(test::sample<Ready>());
  const Bytes goodbye = encode(test::sample<Goodbye>());
  return {with_head(0, 0, {hello}), with_head(6, 1, {connect, ready, goodbye}),
          with_head(255, 1,
                    {encode(test::sample<HelloAck>()), encode(test::sample<Refuse>()),
                     encode(test::sample<Accept>()), encode(test::sample<Reject>())}),
          with_head(7, 1,
                    {encode(test::sample<Resume>()), encode(test::sample<ResumeAck>()),
                     encode(test::sample<StillOpen>()), encode(test::sample<Fenced>())}),
          with_head(16, 1,
                    {encode(test::sample<OfferPath>()), encode(test::sample<AnswerPath>()),
                     encode(test::sample<PathNote>())})};
}

constexpr std::array<Target, 1> kFrameTargets = {{{"frames", take, seeds}}};

}  // namespace

std::span<const Target> frame_targets() { return kFrameTargets; }

}  // namespace beeline::fuzz
