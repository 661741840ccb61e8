// SPDX-License-Identifier: Apache-2.0
//
// Tests that stale, shifted, foreign and missing bytes of a message are found.
#include "tests/support/catch.h"
#include "tools/perf/content.h"
#include "tools/perf/guarded_buffer.h"

namespace beeline::perf {
namespace {

TEST_CASE("content: filled content matches, at every length", "[tools][content]") {
  for (size_t size = 0; size < 40; ++size) {
    CAPTURE(size);
    std::vector<std::uint8_t> data(size + 1, 0);
    fill(data.data(), size, 7);
    CHECK(compare(data.data(), size, 7).count == 0);
    CHECK(data[size] == 0);
  }
}

TEST_CASE("content: one wrong byte is named, wherever it is", "[tools][content]") {
  std::vector<std::uint8_t> data(37);
  for (size_t at = 0; at < data.size(); ++at) {
    CAPTURE(at);
    fill(data.data(), data.size(), 7);
    const std::uint8_t wanted = data[at];
    data[at] = static_cast<std::uint8_t>(wanted + 1);
    const Mismatch mismatch = compare(data.data(), data.size(), 7);
    CHECK(mismatch.count == 1);
    CHECK(mismatch.first == at);
    CHECK(mismatch.wanted == wanted);
    CHECK(mismatch.found == static_cast<std::uint8_t>(wanted + 1));
  }
}

TEST_CASE("content: shifted or foreign data hardly ever matches", "[tools][content]") {
  constexpr size_t kSize = 4096;
  std::vector<std::uint8_t> data(kSize + 64);
  fill(data.data(), data.size(), content_id(0, 1, 2));
  for (const size_t shift : std::vector<size_t>{1, 7, 8, 16, 63}) {
    CAPTURE(shift);
    CHECK(compare(data.data() + shift, kSize, content_id(0, 1, 2)).count > kSize * 9 / 10);
  }
  for (const ContentId other : {content_id(1, 1, 2), content_id(0, 2, 1), content_id(0, 1, 3)}) {
    CHECK(compare(data.data(), kSize, other).count > kSize * 9 / 10);
  }
}

TEST_CASE("guards: a byte written on either side of a buffer counts", "[tools][content]") {
  const GuardedBuffer buffer(100);
  CHECK(buffer.broken_guards() == 0);
  buffer.data()[0] = 1;
  buffer.data()[99] = 1;
  CHECK(buffer.broken_guards() == 0);
  buffer.data()[-1] = 1;
  CHECK(buffer.broken_guards() == 1);
  buffer.data()[100] = 1;
  CHECK(buffer.broken_guards() == 2);
}

}  // namespace
}  // namespace beeline::perf
