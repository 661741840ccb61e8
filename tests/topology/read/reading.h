// SPDX-License-Identifier: Apache-2.0
//
// What the readers' tests do again and again.
#pragma once

#include <string>

#include "tests/support/catch.h"
#include "topology/graph.h"

namespace beeline::topology {

// From a Result of a test that goes on only if it holds.
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
