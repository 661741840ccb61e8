// SPDX-License-Identifier: Apache-2.0
//
// The findings of a host as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "common/base/finding.h"

namespace beeline::doctor {

// A failure or a warning: what the exit status and the first line are about.
bool has_problem(const std::vector<Finding>& findings) noexcept;

// The first line is the verdict. With `all`, also the areas in which everything is as it should be.
std::string text_report(const std::string& host, const std::vector<Finding>& findings, bool all);
std::string json_report(const std::string& host, const std::vector<Finding>& findings);

// Everything that can be found, as a table in Markdown for each area.
std::string kinds_table();

}  // namespace beeline::doctor
