// SPDX-License-Identifier: Apache-2.0
//
// What the readers' tests do again and again.
#pragma once

#include <string>

#include "tests/support/catch.h"
#include "topology/graph.h"

namespace beeline::topology {

// From a Result of a test that goes on only if it holds.
template <class T>
T good(Result<T, std::string> result) {
  if (!result) FAIL(result.error());
  return *std::move(result);
}

template <class T>
std::string error_of(const Result<T, std::string>& result) {
  return result ? std::string("no error") : result.error();
}

inline Graph made(Result<GraphParts, std::string> parts) {
  return good(Graph::make(good(std::move(parts))));
}

}  // namespace beeline::topology
