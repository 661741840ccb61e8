// SPDX-License-Identifier: Apache-2.0
//
// All orders of events around a path that fails, with the product's table and reports at both ends
// (recovery_model.h). Some small searches in every run, larger ones in `--long` runs: the latter
// have the tag [search], and print how many states there are.
#include <fmt/core.h>

#include <cstddef>
#include <string>

#include "tests/plugin/unit/recovery_model.h"
#include "tests/plugin/unit/recovery_search.h"
#include "tests/support/catch.h"

namespace beeline::test {
namespace {

// More would need more memory than a usual machine has.
constexpr std::size_t kMostStates = 60'000'000;

// All states are visited, and no claim of the model or of the search is broken.
void check_sound(const ModelOptions& options) {
  const SearchResult result = search(options, kMostStates);
  INFO(result.wrong);
  CAPTURE(result.states);
  CHECK(result.is_complete);
}

void check_sound_and_print(const char* name, const ModelOptions& options) {
  const SearchResult result = search(options, kMostStates);
  fmt::print("{:<45} {:>9} states\n", name, result.states);
  INFO(name << ": " << result.wrong);
  CHECK(result.is_complete);
}

}  // namespace

TEST_CASE("recovery model: a lone path fails, one message is lost and one comes again") {
  check_sound({.paths = 1, .failures = 1, .lost = 1, .late = 1});
}

TEST_CASE("recovery model: a lone path fails twice, and one message is lost") {
  check_sound({.paths = 1, .failures = 2, .lost = 1});
}

TEST_CASE("recovery model: one of two paths fails, and one message is lost") {
  check_sound({.port_events = false, .lost = 1, .vain_offers = 0});
}

TEST_CASE("recovery model: a lone path with optional receives fails, and one message is lost") {
  check_sound({.paths = 1, .ring = 2, .optional = true, .lost = 1});
}

TEST_CASE("recovery model: a lone path fails, and three messages share two credit lines") {
  check_sound({.paths = 1,
               .lines = 3,
               .ring = 2,
               .chunks = {7, 1, 3},
               .port_events = false,
               .lost = 1,
               .vain_offers = 0});
}

TEST_CASE("recovery model: a device does not move its queue pair to ERROR") {
  const ModelRefuses refuses = GENERATE(ModelRefuses::kSender, ModelRefuses::kReceiver);
  check_sound({.paths = 1, .refuses = refuses, .failures = 2, .lost = 1});
  check_sound({.port_events = false, .refuses = refuses, .lost = 1, .vain_offers = 0});
}

// Shows that the search finds an end that waits for ever.
TEST_CASE("recovery model: an end waits for ever if a closed one does not answer") {
  const SearchResult result = search({.paths = 1, .closed_answers = false, .lost = 1}, kMostStates);
  CHECK_FALSE(result.is_complete);
  CHECK(result.wrong.find("both ends can always finish") != std::string::npos);
}

TEST_CASE("recovery model: one failure, in larger searches", "[.search]") {
  check_sound_and_print("a port fails, a message is lost", {.lost = 1, .vain_offers = 0});
  check_sound_and_print("a message comes again", {.port_events = false, .late = 1});
  check_sound_and_print("a path is not there from the start",
                        {.port_events = false, .starts_alone = true, .lost = 1});
  check_sound_and_print("optional receives",
                        {.ring = 2, .optional = true, .port_events = false, .vain_offers = 0});
}

TEST_CASE("recovery model: two failures, in larger searches", "[.search]") {
  check_sound_and_print("two failures", {.port_events = false, .failures = 2, .vain_offers = 0});
  // The only search that needs a sender that answers FENCED messages of an older generation.
  check_sound_and_print(
      "two failures, a message is lost",
      {.lines = 1, .port_events = false, .failures = 2, .lost = 1, .vain_offers = 0});
  check_sound_and_print("two failures, optional receives, a lone path",
                        {.paths = 1, .ring = 2, .optional = true, .failures = 2, .lost = 1});
}

}  // namespace beeline::test
