// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ends through cells that are written late, twice, or never.
#include "plugin/transfer/in_band.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::int64_t kMs = times::kNsPerMs;

wire::Bytes frame_of(std::size_t bytes, unsigned fill) {
  return wire::make_frame(wire::MessageType::kFenced,
                          wire::Bytes(bytes, static_cast<std::byte>(fill)));
}

std::vector<std::size_t> sizes_heard(InBand& end) {
  std::vector<std::size_t> sizes;
  for (;;) {
    const auto frame = end.next();
    REQUIRE(frame);
    if (!*frame) return sizes;
    sizes.push_back((*frame)->body.size());
  }
}

}  // namespace

TEST_CASE("in-band: a frame longer than a cell travels in pieces, and then there is nothing to do",
          "[in-band]") {
  InBand one;
  InBand other;
  wire::InBandCell cell;
  one.add(1, frame_of(1200, 7));
  std::vector<std::size_t> heard;
  int writes = 0;
  for (std::int64_t now = 0; now < 10; ++now) {
    if (one.due_ns() <= now) {
      one.fill(cell, now);
      other.take(cell);
      ++writes;
    }
    for (const std::size_t size : sizes_heard(other)) heard.push_back(size);
    if (other.due_ns() > now) continue;
    other.fill(cell, now);
    one.take(cell);
  }
  CHECK(heard == std::vector<std::size_t>{1200});
  CHECK(writes == 3);
  CHECK(one.due_ns() == times::kNever);
  CHECK(other.due_ns() == times::kNever);
}

TEST_CASE("in-band: a message that waits is replaced by a newer one of its kind", "[in-band]") {
  InBand one;
  InBand other;
  wire::InBandCell cell;
  one.add(1, frame_of(10, 0));  // is on its way already
  one.add(1, frame_of(11, 0));
  one.add(2, frame_of(20, 0));
  one.add(1, frame_of(12, 0));
  std::vector<std::size_t> heard;
  while (one.due_ns() <= 0) {
    one.fill(cell, 0);
    other.take(cell);
    for (const std::size_t size : sizes_heard(other)) heard.push_back(size);
    other.fill(cell, 0);
    one.take(cell);
  }
  CHECK(heard == std::vector<std::size_t>{10, 20, 12});
}

TEST_CASE("in-band: an unanswered piece is repeated, ever less often", "[in-band]") {
  InBand one;
  wire::InBandCell cell;
  one.add(1, frame_of(10, 0));
  std::vector<std::int64_t> at;
  for (std::int64_t now = 0; now < 4000 * kMs; now += kMs) {
    if (one.due_ns() > now) continue;
    one.fill(cell, now);
    at.push_back(now / kMs);
  }
  CHECK(at == std::vector<std::int64_t>{0, 100, 300, 700, 1500, 2500, 3500});
}

TEST_CASE("in-band: a cell that is not whole does not count", "[in-band]") {
  InBand one;
  wire::InBandCell cell;
  one.add(1, frame_of(600, 9));
  one.fill(cell, 0);
  const auto words = std::bit_cast<wire::InBandWords>(cell);
  CHECK(wire::open_cell(words));
  for (std::size_t i = 0; i < words.size(); ++i) {
    wire::InBandWords torn = words;
    torn[i] = 0;  // as the cell was before
    if (torn[i] != words[i]) CHECK_FALSE(wire::open_cell(torn));
  }
  CHECK_FALSE(wire::open_cell({}));
  cell.size = wire::kInBandBytes + 1;
  wire::seal(cell);
  CHECK_FALSE(wire::open_cell(std::bit_cast<wire::InBandWords>(cell)));
}

TEST_CASE("in-band: every frame arrives once and in order, whatever happens to the cells",
          "[in-band]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 draw(seed);
    const auto one_in = [&](unsigned n) { return draw() % n == 0; };
    struct Side {
      InBand end;
      std::vector<wire::InBandCell> written;  // that the other one may still see
      std::vector<std::size_t> said;
      std::vector<std::size_t> heard;
    };
    std::array<Side, 2> sides;
    const unsigned loss = 1 + draw() % 4;
    std::uint32_t kind = 0;
    std::int64_t now = 0;
    const auto turn = [&](bool is_calm) {
      now += static_cast<std::int64_t>(draw() % 50) * kMs;
      for (std::size_t i = 0; i < 2; ++i) {
        Side& side = sides[i];
        Side& peer = sides[1 - i];
        if (!is_calm && one_in(4)) {
          side.said.push_back(draw() % 1500);
          side.end.add(++kind, frame_of(side.said.back(), 1));
        }
        if (side.end.due_ns() <= now) {
          wire::InBandCell cell;
          side.end.fill(cell, now);
          if (is_calm || !one_in(loss)) side.written.push_back(cell);
        }
        if (peer.written.empty()) continue;
        // Usually the newest, but a write may be late.
        const std::size_t which =
            is_calm || one_in(2) ? peer.written.size() - 1 : draw() % peer.written.size();
        side.end.take(peer.written[which]);
        for (const std::size_t size : sizes_heard(side.end)) side.heard.push_back(size);
      }
    };
    for (int i = 0; i < 300; ++i) turn(false);
    for (int i = 0; i < 3000; ++i) turn(true);
    CHECK(sides[0].heard == sides[1].said);
    CHECK(sides[1].heard == sides[0].said);
  }
}

TEST_CASE("in-band: of two copies of a message the first counts", "[in-band]") {
  SeenSerials seen;
  CHECK(seen.add(1));
  CHECK_FALSE(seen.add(1));
  CHECK(seen.add(3));
  CHECK(seen.add(2));
  CHECK_FALSE(seen.add(2));
  CHECK_FALSE(seen.add(3));
  CHECK(seen.add(100));
  CHECK_FALSE(seen.add(100 - 64));  // too old to tell
  CHECK(seen.add(100 - 63));
  CHECK_FALSE(seen.add(100 - 63));
  CHECK(seen.add(0));  // no number
  CHECK(seen.add(0));
  CHECK(seen.add(0x8000'0000));
}

}  // namespace beeline
