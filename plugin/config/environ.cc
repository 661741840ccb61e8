// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/environ.h"

#include <unistd.h>

#include "common/base/rendezvous_token.h"

namespace beeline {

Environ Environ::of_process() {
  std::vector<std::string_view> assignments;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    if (assignment.substr(0, assignment.find('=')) == kRendezvousTokenVariable) continue;
    assignments.push_back(assignment);
  }
  return Environ(assignments);
}

Environ::Environ(const std::vector<std::string_view>& assignments) {
  for (const std::string_view assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos) continue;
    variables_.push_back(
        {std::string(assignment.substr(0, equals)), std::string(assignment.substr(equals + 1))});
  }
}

std::optional<std::string_view> Environ::get(std::string_view name) const {
  for (const Variable& variable : variables_) {
    if (variable.name != name) continue;
    if (variable.value.empty()) return std::nullopt;
    return variable.value;
  }
  return std::nullopt;
}

}  // namespace beeline
