// SPDX-License-Identifier: Apache-2.0
//
// Compiled as with -Dassertions=false.
#include "tests/plugin/unit/check_assert_off.h"

#include "common/check/assert.h"

namespace beeline::test {

int evaluations_without_assertions() {
  int evaluated = 0;
  const bool only_asserted = false;  // no warning that it is not used
  BL_ASSERT(only_asserted, "it would end the process");
  BL_ASSERT(++evaluated == 0, "it would be counted, and end the process");
  return evaluated;
}

}  // namespace beeline::test
