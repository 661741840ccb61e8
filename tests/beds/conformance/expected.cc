// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/conformance/expected.h"

#include <fstream>
#include <vector>

#include "tests/beds/conformance/catalogue.h"

namespace conformance {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

Worth worth_of(const std::string& spec, const std::string& outcome) {
  if (spec == kOpen || outcome == kDoesNotApply) return Worth::kEither;
  for (const std::string& allowed : split(spec, '|')) {
    if (allowed == outcome) return Worth::kAsSpecified;
  }
  return Worth::kAgainstSpec;
}

const char* to_string(Worth worth) {
  switch (worth) {
    case Worth::kAsSpecified: return "pass";
    case Worth::kEither: return "either";
    case Worth::kAgainstSpec: return "FAIL";
  }
  return "?";
}

Expectations read_expectations(const std::string& path, const std::string& fabric,
                               std::string& why) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    why = "cannot read " + path;
    return {};
  }
  const auto header = split(line, '\t');
  std::size_t column = 0;
  while (column < header.size() && header[column] != fabric) ++column;
  if (column == header.size()) {
    why = path + " has no column " + fabric;
    return {};
  }
  Expectations all;
  while (std::getline(file, line)) {
    const auto fields = split(line, '\t');
    if (fields.size() > column) all[fields[0]] = {fields[1], fields[column]};
  }
  return all;
}

}  // namespace conformance
