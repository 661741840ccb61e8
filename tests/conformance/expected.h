// SPDX-License-Identifier: Apache-2.0
// The committed table of what each fabric does, expected.tsv, and what an outcome is worth.
#pragma once

#include <map>
#include <string>

namespace conformance {

enum class Worth { kAsSpecified, kEither, kAgainstSpec };
Worth worth_of(const std::string& spec, const std::string& outcome);
const char* to_string(Worth worth);

// By the name of the behaviour: what the column of one fabric says, and the rest of the line.
struct Expectation {
  std::string spec;
  std::string outcome;
};
using Expectations = std::map<std::string, Expectation>;

// Nothing if the file cannot be read or has no such column; `why` says so.
Expectations read_expectations(const std::string& path, const std::string& fabric,
                               std::string& why);

}  // namespace conformance
