// SPDX-License-Identifier: Apache-2.0
#include "common/base/finding.h"

namespace beeline {

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::kOk: return "ok";
    case Severity::kUnknown: return "unknown";
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kFailure: return "failure";
  }
  return "?";
}

std::string describe(const Finding& finding) {
  std::string text = finding.fact;
  if (!finding.why.empty()) text += "; " + finding.why;
  if (finding.fix.empty() && finding.command.empty()) return text;
  text += ". To fix it: " + finding.command;
  if (!finding.command.empty() && !finding.fix.empty()) text += "; ";
  text += finding.fix;
  return text;
}

}  // namespace beeline
