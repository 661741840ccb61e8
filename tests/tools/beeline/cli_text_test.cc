// SPDX-License-Identifier: Apache-2.0
#include "tests/support/catch.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"

namespace beeline::tools {
namespace {

TEST_CASE("text: it is broken at blanks, and its lines begin at the same column", "[tools][cli]") {
  CHECK(wrapped("one two three", 0, 7) == "one two\nthree");
  CHECK(wrapped("one two three", 4, 11) == "one two\n    three");
  CHECK(wrapped("a  b", 0, 100) == "a  b");
  CHECK(wrapped("aaaa  bbbb", 0, 6) == "aaaa\nbbbb");
  CHECK(wrapped("aaaa  bbbb", 0, 4) == "aaaa\nbbbb");
  CHECK(wrapped("a /a/path/that/is/longer b", 0, 10) == "a\n/a/path/that/is/longer\nb");
}

TEST_CASE("text: only lines that are too long are broken", "[tools][cli]") {
  CHECK(fitted("  a  b\nshort\n", 7) == "  a  b\nshort\n");
  CHECK(fitted("  one two three four\n\nlast", 12) == "  one two\n    three\n    four\n\nlast");
  CHECK(fitted("one two\n", std::string::npos) == "one two\n");
}

TEST_CASE("text: it is colored only on request", "[tools][cli]") {
  CHECK(colored("FAIL", Color::kRed, true) == "\033[31mFAIL\033[0m");
  CHECK(colored("FAIL", Color::kRed, false) == "FAIL");
  CHECK(colored("NOTE", Color::kNone, true) == "NOTE");
}

}  // namespace
}  // namespace beeline::tools
