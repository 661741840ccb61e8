// SPDX-License-Identifier: Apache-2.0
//
// The findings of a host as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "common/base/finding.h"
#include "tools/cli/text_style.h"

namespace beeline::doctor {

// A failure or a warning: what the exit status and the first line are about.
bool has_problem(const std::vector<Finding>& findings) noexcept;

// The first line is the verdict. With `all`, also the areas in which everything is as it should be.
std::string text_report(const std::string& host, const std::vector<Finding>& findings, bool all,
                        const tools::TextStyle& style);
std::string json_report(const std::string& host, const std::vector<Finding>& findings);

// Everything that can be found, as a table in Markdown for each area.
std::string kinds_table();
// The same for a terminal.
std::string kinds_text(const tools::TextStyle& style);
std::string kinds_json();

}  // namespace beeline::doctor
