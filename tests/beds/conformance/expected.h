// SPDX-License-Identifier: Apache-2.0
// Reads expected.tsv, the committed table of outcomes, and compares outcomes with it.
#pragma once

#include <map>
#include <string>

namespace conformance {

enum class Worth { kAsSpecified, kEither, kAgainstSpec };
Worth worth_of(const std::string& spec, const std::string& outcome);
const char* to_string(Worth worth);

// By the name of a behavior: the value in the column of one fabric, and the rest of the line.
struct Expectation {
  std::string spec;
  std::string outcome;
};
using Expectations = std::map<std::string, Expectation>;

// Returns nothing if the file cannot be read or has no such column; then `why` is the reason.
Expectations read_expectations(const std::string& path, const std::string& fabric,
                               std::string& why);

}  // namespace conformance
