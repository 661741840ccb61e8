// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace beeline::test {

// How often a source that is compiled without assertions evaluates the conditions of two.
int evaluations_without_assertions();

}  // namespace beeline::test
