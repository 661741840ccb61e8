// SPDX-License-Identifier: Apache-2.0
//
// Tests of the samples of a long run.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"
#include "tools/perf/samples.h"

namespace beeline::perf {
namespace {

TEST_CASE("samples: all are kept below the limit", "[tools][samples]") {
  Samples samples(4);
  CHECK(samples.sorted().empty());
  samples.make_room(4);
  for (const std::int64_t sample : {30, 10, 40, 20}) samples.add(sample);
  CHECK(samples.sorted() == std::vector<std::int64_t>{10, 20, 30, 40});
}

TEST_CASE("samples: of a long run an even part is kept, and the exact extremes",
          "[tools][samples]") {
  constexpr std::uint64_t kMost = 100;
  Samples samples(kMost);
  std::uint64_t next = 0;
  for (const std::uint64_t portion : {1U, 70U, 3U, 500U, 10'000U}) {
    samples.make_room(portion);
    for (std::uint64_t i = 0; i < portion; ++i) samples.add(static_cast<std::int64_t>(next++));
    CHECK(samples.kept().size() <= kMost);
    CHECK(2 * samples.kept().size() >= std::min(kMost, next));
  }
  CHECK(samples.least() == 0);
  CHECK(samples.greatest() == static_cast<std::int64_t>(next) - 1);
  const std::vector<std::int64_t>& kept = samples.kept();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(kept[i] == static_cast<std::int64_t>(i) * kept[1]);
  }
}

}  // namespace
}  // namespace beeline::perf
