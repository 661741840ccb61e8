// SPDX-License-Identifier: Apache-2.0
//
// Visits all states of the model that can be reached, and checks that
//   - no step breaks a claim of the model,
//   - from every state a way leads to the end that needs no further fault, and
//   - the ends do not go round in circles: between two repetitions, which have a timer, only a
//     limited number of steps is possible.
// A state is known by 96 bits of a hash. That two of ten million states have the same is as likely
// as one in 10^15.
#pragma once

#include <cstddef>
#include <string>

#include "tests/plugin/unit/recovery_model.h"

namespace beeline::test {

struct SearchResult {
  std::size_t states = 0;
  bool is_complete = false;  // false: there are more states than allowed, or something is wrong
  std::string wrong;         // with the steps that lead there; empty: all claims hold
};

SearchResult search(const ModelOptions& options, std::size_t most_states);

}  // namespace beeline::test
