// SPDX-License-Identifier: Apache-2.0
//
// Helpers for the tests of the readers.
#pragma once

#include <string>

#include "tests/support/catch.h"
#include "topology/graph.h"

namespace beeline::topology {

// Returns the value, or ends the test with the error.
template <class T, class E>
T good(Result<T, E> result) {
  if (!result) FAIL(Problem(result.error()).text);
  return *std::move(result);
}

template <class T>
std::string error_of(const Outcome<T>& result) {
  return result ? std::string("no error") : result.error().text;
}

inline Graph made(Outcome<GraphParts> parts) { return good(Graph::make(good(std::move(parts)))); }

}  // namespace beeline::topology
