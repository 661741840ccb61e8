// SPDX-License-Identifier: Apache-2.0
//
// The one place that turns findings into lines of NCCL's log.
#pragma once

#include <span>

#include "common/base/finding.h"
#include "common/base/log.h"

namespace beeline {

// Writes one line for each: a failure or a warning as WARN, and a note as INFO of these subsystems.
// Findings that are ok or unknown are left out.
void log_findings(std::span<const Finding> findings, unsigned long subsystems = kLogInit | kLogNet);
void log_finding(const Finding& finding, unsigned long subsystems = kLogInit | kLogNet);

}  // namespace beeline
