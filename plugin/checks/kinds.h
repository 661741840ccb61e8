// SPDX-License-Identifier: Apache-2.0
//
// The table of everything that the checks can find. `beeline doctor` prints its texts, and
// docs/troubleshooting.md is made from it.
#pragma once

#include <span>
#include <string_view>

#include "common/base/finding.h"

namespace beeline::checks {

struct Kind {
  std::string_view id;  // "memlock-low"; never changes, because scripts and documents refer to it
  Severity severity = Severity::kWarning;
  std::string_view title;     // what is found, in general
  std::string_view why;       // what it does to a job
  std::string_view fix = {};  // empty: the command says it all
  // With names in braces, for which the check has values; "${" belongs to the shell. May be empty.
  std::string_view command = {};
};

struct Area {
  std::string_view title;  // "limits": in the output
  std::span<const Kind> kinds;
};

// In the order in which the report shows them.
std::span<const Area> areas() noexcept;
// Null if there is none.
const Kind* find_kind(std::string_view id) noexcept;

}  // namespace beeline::checks
