// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/finding_log.h"

namespace beeline {

void log_findings(std::span<const Finding> findings, unsigned long subsystems) {
  for (const Finding& finding : findings) log_finding(finding, subsystems);
}

void log_finding(const Finding& finding, unsigned long subsystems) {
  switch (finding.severity) {
    case Severity::kOk:
    case Severity::kUnknown: return;
    case Severity::kNote: BL_INFO(subsystems, "%s", describe(finding).c_str()); return;
    case Severity::kWarning:
    case Severity::kFailure: BL_WARN("%s", describe(finding).c_str()); return;
  }
}

}  // namespace beeline
